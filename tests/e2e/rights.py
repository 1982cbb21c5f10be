"""Which rights Moorage's accounts use, by the API server's audit log, beside those granted to them.

    audit logs of all clusters ──note──► a file each in $MOORAGE_RIGHTS ──python -m──► what differs

Only what the components themselves ask for counts: tests borrow their tokens, with programs of
other names. One story uses few rights, so the comparison is for runs of all of them: `make test`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.deploy.documents import DASHBOARD, MANIFESTS, documents_in
from tests.e2e.charts import render

FOLDER = "MOORAGE_RIGHTS"
HOOK = "helm.sh/hook"
SYSTEM = "system:serviceaccount:moorage-system:"
PROGRAMS = {
    "driver-node": "moorage-driver-node",
    "driver-shared": "moorage-driver-shared",
    "scheduler": "kube-scheduler",
    "scheduler-plugin": "moorage-scheduler-plugin",
    "check": "moorage-check",
    "dashboard": "moorage-dashboard",
    "in-use": "moorage-in-use",
    "leave": "moorage-leave",
    "webhook": "moorage-webhook",
}
"""How each account's own program calls itself."""

BROKERS = "moorage-brokers"
"""The account in whose name the driver makes brokers: one of the same name in each namespace."""

ACCOUNT = "system:serviceaccount:"
COPIES = {"rotating": "webhook"}
"""Accounts of stories that have the roles of another, under other names."""


class Right(NamedTuple):
    """A verb that an account may use.

    Attributes:
        resource: With its subresource and group: `pods/binding`, `queues.moorage.dev`.
    """

    account: str
    verb: str
    resource: str


UNSEEN: Mapping[Right, str] = {
    Right("driver-node", "create", "instances.akri.sh"): (
        "An apply that makes an object needs it, and is noted as a patch."
    ),
    Right("driver-node", "delete", "resourceslices.resource.k8s.io"): (
        "A slice goes when its pool needs fewer, which takes hundreds of devices to show."
    ),
    **{
        Right("driver-node", f"{where}-node:patch", "resourceclaims/driver.resource.k8s.io"): (
            "No object: whoever writes of devices in a claim's status needs it, too."
        )
        for where in ("associated", "arbitrary")
    },
    Right("scheduler-plugin", "patch", "resourceclaims/binding.resource.k8s.io"): (
        "No object: whoever changes these parts of a claim's status needs it, too."
    ),
    Right(BROKERS, "create", "services"): (
        "An apply that makes an object needs it, and is noted as a patch."
    ),
    Right("webhook", "get", "namespaces"): (
        "A namespace is read that its watch has not told of yet, which is seldom so."
    ),
    **{
        Right(account, "watch", "podgroups.scheduling.x-k8s.io"): (
            "Watched where they are served; no story serves the coscheduling plugin's."
        )
        for account in ("dashboard", "scheduler-plugin")
    },
    **{
        Right("dashboard", verb, "podgroups.scheduling.k8s.io"): (
            "No story looks at the dashboard while Kubernetes' own PodGroups are served."
        )
        for verb in ("list", "watch")
    },
    Right("dashboard", "watch", "podgroups.scheduling.run.ai"): (
        "No story looks at the dashboard while KAI's PodGroups are served."
    ),
    Right("dashboard", "get", "resourceclaims.resource.k8s.io"): (
        "A claim is read that a pod names and no watch has brought, which is seldom so."
    ),
    **{
        Right(account, "patch", "events.events.k8s.io"): (
            "An Event that happens again soon becomes a series; stories seldom tell one twice."
        )
        for account in ("driver-node", "driver-shared", "scheduler-plugin")
    },
}
"""Rights that no log shows being used, each with the reason why it is granted."""

ELSEWHERE: Mapping[Right, str] = {
    **{
        Right("driver-node", verb, kind): "A Configuration may name what nobody has granted yet."
        for verb in ("get", "list", "watch")
        for kind in ("secrets", "configmaps")
    },
    Right("scheduler-plugin", "get", "leases.coordination.k8s.io"): (
        "A test's kube-scheduler may have its Lease in kube-system."
    ),
}
"""Rights that are asked for and not there, each with the reason why that is no fault of a role."""


def granted(documents: Iterable[Mapping[str, Any]]) -> frozenset[Right]:
    """What manifests grant to our accounts, Kubernetes' own roles left out."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    roles = {
        (kind, role["metadata"]["name"]): role["rules"]
        for kind in ("Role", "ClusterRole")
        for role in by_kind.get(kind, ())
    }
    bindings = (*by_kind.get("RoleBinding", ()), *by_kind.get("ClusterRoleBinding", ()))
    return frozenset(
        Right(subject["name"], verb, resource)
        for binding in bindings
        for rule in roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]), ())
        for subject in binding["subjects"]
        for verb, resource in _pairs(rule)
    )


def _pairs(rule: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield verb, _named(resource, group)


def _named(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def asked(entry: Mapping[str, Any]) -> tuple[tuple[Right, bool], ...]:
    """The rights that a request of one of our programs needed, and whether they were there.

    A request in the name of another account needs the right to act as it, and is of that account.
    """
    name = entry["user"].get("username", "").removeprefix(SYSTEM)
    account = COPIES.get(name, name)
    place = entry.get("objectRef")
    program = PROGRAMS.get(account)
    if program is None or place is None or "resource" not in place:
        return ()
    if not entry.get("userAgent", "").startswith(program):
        return ()
    other = entry.get("impersonatedUser", {}).get("username", "")
    if not other:
        return (_asked_by(account, place, entry),)
    kind = "serviceaccounts" if other.startswith(ACCOUNT) else "users"
    acting = Right(account, "impersonate", kind), True
    return acting, _asked_by(other.removeprefix(ACCOUNT).partition(":")[2], place, entry)


def _asked_by(
    account: str, place: Mapping[str, Any], entry: Mapping[str, Any]
) -> tuple[Right, bool]:
    resource = "/".join(filter(None, (place["resource"], place.get("subresource"))))
    right = Right(account, entry["verb"], _named(resource, place.get("apiGroup", "")))
    decision = entry.get("annotations", {}).get("authorization.k8s.io/decision")
    return right, decision != "forbid"


def note(logs: Path) -> None:
    """Write down what a cluster's audit log shows; nothing unless somebody wants to compare.

    Folders of two clusters may have one name, so the file is named for the whole path.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    found = {one for file in logs.glob("audit*.log") for one in _in(file)}
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sorted([*right, is_granted] for right, is_granted in found))
    digest = hashlib.sha256(str(logs.absolute()).encode()).hexdigest()[:8]
    (target / f"{logs.parent.name.lstrip('.')}-{digest}.json").write_text(text)


def _in(file: Path) -> Iterator[tuple[Right, bool]]:
    with file.open() as lines:
        for line in lines:
            if SYSTEM in line and line.endswith("\n"):
                yield from asked(json.loads(line))


def differences(
    may: frozenset[Right], seen: Iterable[tuple[Right, bool]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences about rights that nobody uses, and about uses without a right."""
    allowed = {right for right, is_granted in seen if is_granted}
    refused = {right for right, is_granted in seen if not is_granted}
    idle = sorted(may - allowed - UNSEEN.keys())
    stale = sorted(UNSEEN.keys() - may)
    return (
        (
            *(f"{_said(right)}, and no story uses it." for right in idle),
            *(f"{_said(right)} no more; take its reason away." for right in stale),
        ),
        tuple(
            f"{right.account} tried to {right.verb} {right.resource}, and may not."
            # What is granted was asked for before the API server had heard of its role. That of a
            # kube-scheduler is Kubernetes' own.
            for right in sorted(refused - may - ELSEWHERE.keys())
            if right.account != "scheduler"
        ),
    )


def unlogged(seen: Iterable[tuple[Right, bool]]) -> tuple[str, ...]:
    """A sentence where the logs tell of no refusal, not even of those that each run has.

    Then they would not have told of others, either.
    """
    refused = {right for right, is_granted in seen if not is_granted}
    return () if refused & ELSEWHERE.keys() else ("The logs tell of no refusal at all.",)


def _said(right: Right) -> str:
    return f"{right.account} may {right.verb} {right.resource}"


def read(folder: Path) -> list[tuple[Right, bool]]:
    """What all clusters showed."""
    return [
        (Right(account, verb, resource), is_granted)
        for file in sorted(folder.glob("*.json"))
        for account, verb, resource, is_granted in json.loads(file.read_text())
    ]


def in_manifests() -> frozenset[Right]:
    """What an installation without Helm grants."""
    return granted(_manifests())


def in_release() -> frozenset[Right]:
    """The same of one with Helm and with brokers: its hooks are granted something as well."""
    everything = render({"uninstall": {"purge": True}})
    hooks = [o for o in everything if HOOK in o["metadata"].get("annotations", {})]
    return granted([*_manifests(), *hooks]) | _of_brokers()


def _of_brokers() -> frozenset[Right]:
    """What the chart adds where all namespaces may have brokers, as in stories, and for one."""
    found = (render({"brokers": {"namespaces": [one]}}) for one in ("*", "default"))
    return frozenset().union(*(granted(o for o in each if _is_of_brokers(o)) for each in found))


def _is_of_brokers(document: Mapping[str, Any]) -> bool:
    return "broker" in document["metadata"]["name"]


def _manifests() -> list[Mapping[str, Any]]:
    folders = {**documents_in(MANIFESTS), **documents_in(DASHBOARD)}
    return [document for found in folders.values() for document in found]


def main(folder: Path) -> int:
    """Say what differs. Returns the exit status."""
    seen = read(folder)
    idle, missing = differences(in_release(), seen)
    found = (*idle, *missing, *unlogged(seen))
    sys.stdout.writelines(f"{sentence}\n" for sentence in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
