"""Whether what may not be written is refused: policies, and the webhook before them."""

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
    "moorage-claims": "whoever may edit a claim may write its owner",
    "moorage-claim-templates": "templates may name owners",
    "moorage-pods": "the queue of a pod that holds devices may be changed",
    "moorage-bindings": "a binding may name another queue",
    "moorage-placed-pods": "a pod with a node in its spec gets devices for nothing",
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
"""Each policy that is always installed, and what holds without it."""

CHOSEN: Mapping[str, str] = {
    "moorage-allocations": "other schedulers may give accounted devices away, uncharged; right"
    " only with accounting.otherSchedulers: Allow",
    "moorage-podgroups": "a PodGroup's queue may be changed; right only without"
    " accounting.podGroups",
    "moorage-webhook-registrations": "the webhook's account may rewrite any registration; right"
    " only where cert-manager makes the certificate",
    "moorage-webhook-secrets": "the webhook's account may write any Secret of its namespace;"
    " right only where cert-manager makes the certificate",
}
"""Each that a value leaves out."""

UPGRADE = "helm upgrade moorage CHART, or kubectl apply -f deploy/policies -f deploy/manifests"
WEBHOOK = "moorage"


def judge_policies(setup: Setup) -> Iterator[Finding]:
    """One finding for each policy that is at fault, else one for all."""
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
        yield Finding(Level.OK, "policies", f"{count} policies are bound and refuse.")


def _missing(
    level: Level, expected: Mapping[str, str], there: set[str], bound: set[str]
) -> Iterator[Finding]:
    for name, then in expected.items():
        if name not in there:
            yield Finding(level, "policies", f"{name} is not there: {then}.", UPGRADE)
        elif name not in bound:
            yield Finding(level, "policies", f"Nothing binds {name} to Deny: {then}.", UPGRADE)


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
            said = f"There is no {kind} registration {WEBHOOK}: new objects are stored unjudged."
            mend = "Set webhook.enabled: true, if that is not meant."
            yield Finding(Level.WARNING, part, said, mend)
        elif not all(w["clientConfig"].get("caBundle") for w in body["webhooks"]):
            said = f"The {kind} registration {WEBHOOK} trusts nobody yet: each call fails."
            mend = "The webhook writes its authority when it starts: look at its log."
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
        said = "No replica is ready: pods, claims and Queues that it judges are refused."
        yield Finding(Level.ERROR, "webhook", said, look)
    elif ready == 1:
        said = "One replica is ready: when it goes, what it judges is refused."
        yield Finding(Level.WARNING, "webhook", said, look)
    else:
        yield Finding(Level.OK, "webhook", f"Registered, {ready} replicas are ready.")
