"""What has to hold at a quiet point: the books are right, nothing is left, nobody waits in vain."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.charges import charges, tree_of, usage
from tests.chaos.findings import Finding
from tests.chaos.guarantee import guarantee_findings, is_guarded
from tests.chaos.measures import is_in_doubt, note_findings
from tests.chaos.objects import (
    ADMITTED,
    CHARGES,
    OWNER_POD,
    QUEUE,
    Object,
    Snapshot,
    allocation,
    annotation,
    condition,
    is_going,
    is_non_preemptible,
    is_placed,
    label,
    members_of,
    queue_of,
    reserved_for,
    results,
    shown,
)
from tests.chaos.quantities import amount
from tests.chaos.queue_tree import Tree
from tests.chaos.vendor_supply import has_a_choice
from tests.chaos.verdicts import (
    borrows,
    is_gated,
    reasons,
    reasons_behind,
    waits,
)
from tests.chaos.workloads import lacks_its_workload

BACKOFF = "BorrowingBackoff"
"""Pods like it were evicted lately: how often, this checker does not count."""

OTHER_WORDS = {"RoomIsLeft", "DeviceHeld", "OtherGates", "PodGroupIncomplete", "Fits"}
"""Reasons that are about other pods, which this checker does not judge."""


def rest_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Everything that must not be at rest."""
    yield from _owners(snapshot)
    yield from _books(snapshot)
    yield from note_findings(tree_of(snapshot), snapshot)
    yield from _left_overs(snapshot)
    yield from _gone_configurations(snapshot)
    yield from _waiting(snapshot)
    yield from guarantee_findings(snapshot)
    yield from _groups(snapshot)


def _owners(snapshot: Snapshot) -> Iterator[Finding]:
    pods = snapshot.pods_by_uid()
    for claim in snapshot.all("resourceclaims"):
        about, owner = f"claim {shown(claim)}", label(claim, QUEUE)
        users = [pods[each] for each in reserved_for(claim, snapshot) if each in pods]
        if results(claim) and any(is_placed(user) for user in users) and not owner:
            yield Finding("one-owner", about, "pods use its devices, and no queue owns it")
        if not allocation(claim) and annotation(claim, OWNER_POD):
            yield Finding("left-over", about, f"it has no devices, and is still owned by {owner}")
        if results(claim) and not reserved_for(claim, snapshot):
            # Of a pod that Bind refuses, each try leaves one anew.
            since = (allocation(claim) or {}).get("allocationTimestamp", "some time ago")
            yield Finding("left-over", about, f"no pod has reserved its devices of {since}")
        for user in users:
            if is_non_preemptible(user) and is_placed(user) and queue_of(user, snapshot) != owner:
                sentence = f"Pod {shown(user)} uses it, is foreign to {owner} and non-preemptible"
                yield Finding("foreign-non-preemptible", about, sentence)


def _books(snapshot: Snapshot) -> Iterator[Finding]:
    tree, found = tree_of(snapshot), list(charges(snapshot))
    own = usage(found, tree)
    own_held = usage((charge for charge in found if charge.is_non_preemptible), tree)
    doubtful = _doubtful(tree, snapshot)
    for name, queue in sorted(tree.queues.items()):
        status = queue.get("status") or {}
        for field, sums in (("usage", own), ("usageNonPreemptible", own_held)):
            amounts = {word: amount(n) for word, n in (status.get(field) or {}).items()}
            told = {word: n for word, n in amounts.items() if n}
            counted = {w: n for w, n in sums.get(name, {}).items() if n and tree.shows(name, w)}
            if told != counted and name not in doubtful:
                sentence = f"status.{field} is {told}, counted are {counted}"
                yield Finding("books", f"queue {name}", sentence)
    charged = {charge.queue for charge in found}
    for name in sorted(charged - {*tree.queues}):
        yield Finding("books", f"queue {name}", "something is charged to it, and it is not there")


def _doubtful(tree: Tree, snapshot: Snapshot) -> set[str]:
    """Queues that are charged for a device of which it is not known what it costs."""
    return {
        queue
        for claim in snapshot.all("resourceclaims")
        if is_in_doubt(claim, tree, snapshot)
        for queue in tree.path(label(claim, QUEUE))
    }


def _left_overs(snapshot: Snapshot) -> Iterator[Finding]:
    own = usage(charges(snapshot), tree_of(snapshot))
    for queue in snapshot.all("queues"):
        name = queue["metadata"]["name"]
        has = CHARGES in (queue["metadata"].get("finalizers") or ())
        if name in own and not has:
            yield Finding("books", f"queue {name}", "it is charged and may be deleted")
        if has and is_going(queue) and name not in own:
            yield Finding(
                "left-over", f"queue {name}", "a finalizer keeps it, and nothing is charged"
            )


def _gone_configurations(snapshot: Snapshot) -> Iterator[Finding]:
    configurations = {key[1] for key in snapshot.objects.get("configurations", {})}
    for instance in snapshot.all("instances"):
        of, slots = instance["spec"]["configurationName"], instance["spec"].get("deviceUsage") or {}
        if of not in configurations and not any(slots.values()):
            yield Finding("left-over", f"instance {shown(instance)}", f"Configuration {of} is gone")
    for body in snapshot.all("resourceslices"):
        for device in body["spec"].get("devices") or ():
            of = (device["attributes"].get("configuration") or {}).get("string")
            if of and of not in configurations and not _is_used(device["name"], snapshot):
                yield Finding(
                    "left-over", f"device {device['name']}", f"Configuration {of} is gone"
                )


def _is_used(device: str, snapshot: Snapshot) -> bool:
    found = (result for claim in snapshot.all("resourceclaims") for result in results(claim))
    return any(result["device"] == device for result in found)


def _waiting(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in snapshot.all("pods"):
        if waits(pod):
            yield from _why(pod, snapshot)


def _why(pod: Object, snapshot: Snapshot) -> Iterator[Finding]:
    told, about = why_it_waits(pod), f"pod {shown(pod)}"
    if has_a_choice(pod, snapshot):
        if not told:
            yield Finding(
                "no-reason", about, "it waits for one of several things, and is not told why"
            )
        return
    if (
        told in OTHER_WORDS
        or lacks_its_workload(pod, snapshot)
        or (BACKOFF in told and borrows(pod, snapshot))
    ):
        return
    own = reasons(pod, snapshot)
    if not own:
        yield Finding(
            "fits-and-waits", about, f"nothing keeps it; what it is told: {told or 'nothing'}"
        )
    elif not told:
        yield Finding("no-reason", about, f"it waits and is not told that {sorted(own)}")
    elif is_gated(pod) and told not in own | reasons_behind(pod, snapshot):
        yield Finding(
            "false-reason", about, f"it is told {told}, and what keeps it is {sorted(own)}"
        )


def _groups(snapshot: Snapshot) -> Iterator[Finding]:
    """No part of a group holds devices while the rest cannot come."""
    for group in snapshot.all("podgroups"):
        members = members_of(group, snapshot)
        running = [pod for pod in members if is_placed(pod)]
        least = int(group["spec"].get("minMember") or 0)
        is_done = any(pod["status"]["phase"] == "Succeeded" for pod in members)
        may_go = not any(is_non_preemptible(pod) for pod in running)
        guarded = any(is_guarded(pod, snapshot) for pod in running)
        if 0 < len(running) < least and may_go and not is_done and not guarded:
            sentence = f"{len(running)} of its pods run, and it needs {least}"
            yield Finding("part-of-a-group", f"podgroup {shown(group)}", sentence)


def why_it_waits(pod: Object) -> str:
    """The word of the gate's condition; of a pod without a gate, kube-scheduler's sentence."""
    if is_gated(pod):
        return str(condition(pod, ADMITTED).get("reason", ""))
    return str(condition(pod, "PodScheduled").get("message", ""))
