"""Whether forbidden writes are refused: the policies, and the webhook before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kube.shapes.reading import JsonObject
from scheduler_plugin.checking.setups import (
    Finding,
    Level,
    Setup,
    Unread,
    look_at,
    name_of,
    named,
    unread,
)

POLICIES: Mapping[str, str] = {
    "moorage-claims": "a user who may edit a claim may write its owner",
    "moorage-claim-templates": "a template may name an owner",
    "moorage-pods": "the queue of a pod that holds devices may be changed",
    "moorage-bindings": "a binding may name another queue",
    "moorage-placed-pods": "a pod with a node in its spec gets devices uncharged",
    "moorage-scheduler-plugin-pods": "the plugin's account may change any part of a pod",
    "moorage-scheduler-plugin-claims": "the plugin's account may allocate devices",
    "moorage-scheduler-plugin-owners": "the plugin's account may change any part of a claim",
    "moorage-scheduler-plugin-queues": "the plugin's account may raise any Queue's limits",
    "moorage-driver-node-slices": "a node's driver may write other nodes' slices",
    "moorage-driver-node-instances": "a node's driver may write other nodes' Instances",
    "moorage-driver-node-classes": "a node's driver may write any DeviceClass",
    "moorage-driver-node-configurations": "a node's driver may write any Configuration",
    "moorage-driver-node-nodes": "a node's driver may write other Nodes",
    "moorage-driver-node-claims": "a node's driver may write the status of any claim",
    "moorage-driver-shared-instances": "the shared driver may rewrite any Instance",
    "moorage-driver-shared-slices": "the shared driver may rewrite any slice",
    "moorage-driver-shared-classes": "the shared driver may rewrite any DeviceClass",
}
"""Each policy that is always installed, and what is possible without it."""

CHOSEN: Mapping[str, str] = {
    "moorage-allocations": "other schedulers may allocate accounted devices uncharged; this is"
    " right only with accounting.otherSchedulers: Allow",
    "moorage-podgroups": "a PodGroup's queue may be changed; this is right only without"
    " accounting.podGroups",
    "moorage-webhook-registrations": "the webhook's account may rewrite any registration; this is"
    " right only if cert-manager makes the certificate",
    "moorage-webhook-secrets": "the webhook's account may write any Secret of its namespace; this"
    " is right only if cert-manager makes the certificate",
}
"""Each policy that a value of the chart omits, and what is possible without it."""

UPGRADE = "Run helm upgrade moorage CHART, or kubectl apply -f deploy/policies -f deploy/manifests."
WEBHOOK = "moorage"


def judge_policies(setup: Setup) -> Iterator[Finding]:
    """One finding for each faulty policy, else one for all."""
    match setup.policies, setup.bindings:
        case (Unread() as found, _) | (_, Unread() as found):
            yield unread("policies", found)
        case tuple(policies), tuple(bindings):
            yield from _policies(policies, bindings)


def _policies(
    policies: tuple[JsonObject, ...], bindings: tuple[JsonObject, ...]
) -> Iterator[Finding]:
    bound = {b["spec"]["policyName"] for b in bindings if "Deny" in b["spec"]["validationActions"]}
    there = {name_of(body) for body in policies}
    ours = POLICIES.keys() | CHOSEN.keys()
    flaws = [
        *_missing(Level.ERROR, POLICIES, there, bound),
        *_missing(Level.WARNING, CHOSEN, there, bound),
        *_broken([body for body in policies if name_of(body) in ours]),
    ]
    yield from flaws
    if not any(flaw.level is Level.ERROR for flaw in flaws):
        count = len(there & bound & ours)
        yield Finding(Level.OK, "policies", f"{count} policies are bound to Deny.")


def _missing(
    level: Level, expected: Mapping[str, str], there: set[str], bound: set[str]
) -> Iterator[Finding]:
    for name, then in expected.items():
        if name not in there:
            yield Finding(level, "policies", f"{name} does not exist: {then}.", UPGRADE)
        elif name not in bound:
            said = f"{name} has no binding with Deny: {then}."
            yield Finding(level, "policies", said, UPGRADE)


def _broken(policies: list[JsonObject]) -> Iterator[Finding]:
    for body in policies:
        for warning in body.get("status", {}).get("typeChecking", {}).get("expressionWarnings", ()):
            said = f"{name_of(body)}, {warning['fieldRef']}: {warning['warning']}"
            yield Finding(Level.WARNING, "policies", said)


def judge_webhook(setup: Setup) -> Iterator[Finding]:
    """Whether new pods, claims and Queues are judged before they are stored."""
    flaws = [*_registrations(setup)]
    yield from flaws
    if not any(flaw.level is Level.WARNING for flaw in flaws):
        yield from _answering(setup)


def _registrations(setup: Setup) -> Iterator[Finding]:
    part = "webhook"
    for kind, found in (("validating", setup.validating), ("mutating", setup.mutating)):
        if isinstance(found, Unread):
            yield unread(part, found)
        elif (body := named(found, WEBHOOK)) is None:
            said = f"There is no {kind} registration {WEBHOOK}: new objects are stored unchecked."
            mend = "Set webhook.enabled: true, unless this is intended."
            yield Finding(Level.WARNING, part, said, mend)
        elif not all(w["clientConfig"].get("caBundle") for w in body["webhooks"]):
            said = f"The {kind} registration {WEBHOOK} has no caBundle yet: each call fails."
            mend = "The webhook writes its authority when it starts: read its log."
            yield Finding(Level.ERROR, part, said, mend)


def _answering(setup: Setup) -> Iterator[Finding]:
    found = setup.endpoints
    if isinstance(found, Unread):
        yield unread("webhook", found)
        return
    endpoints = [e for body in found for e in body.get("endpoints") or ()]
    ready = sum(e.get("conditions", {}).get("ready", True) for e in endpoints)
    look = look_at("get pods", setup.namespace, "moorage-webhook")
    if not ready:
        said = "No replica is ready: pods, claims and Queues that it checks are refused."
        yield Finding(Level.ERROR, "webhook", said, look)
    elif ready == 1:
        said = "Only one replica is ready: without it, the objects that it checks are refused."
        yield Finding(Level.WARNING, "webhook", said, look)
    else:
        yield Finding(Level.OK, "webhook", f"It is registered, and {ready} replicas are ready.")
