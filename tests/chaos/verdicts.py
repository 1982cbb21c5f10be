"""The checker's own verdict on a pod that waits: what keeps it from its devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.chaos.charges import (
    Amounts,
    Charge,
    by_resource,
    charges,
    cost,
    resource_of,
    slots_asked,
    tree_of,
    usage,
)
from tests.chaos.objects import (
    GATE,
    POD_GROUP,
    QUEUE,
    VENDORS,
    Object,
    Snapshot,
    allocation,
    annotation,
    claims_of,
    group_of,
    is_going,
    is_non_preemptible,
    is_over,
    is_placed,
    label,
    members_of,
    node_of,
    queue_of,
    shown,
    uid,
)
from tests.chaos.queue_tree import Tree
from tests.chaos.supply import free_devices, ready_nodes
from tests.chaos.vendor_supply import are_free, asked_of_vendors, first_choices, most_asked
from tests.chaos.workloads import has_another_queue

NO_DEVICE = "NoDeviceFree"


def waits(pod: Object) -> bool:
    """Whether a pod asks for devices and has no node yet."""
    asks = bool(slots_asked(pod)) or bool(pod["spec"].get("resourceClaims"))
    gone = is_over(pod) or "deletionTimestamp" in pod["metadata"]
    return asks and not gone and not node_of(pod)


def reasons(pod: Object, snapshot: Snapshot) -> set[str]:
    """All that keep it from its devices now, in the product's words; none is: it fits."""
    return {*_reasons(pod, snapshot)}


def reasons_behind(pod: Object, snapshot: Snapshot) -> set[str]:
    """Ceilings that those keep it from who were let go before it, and have no node yet."""
    found = [*charges(snapshot), *_promises(pod, snapshot)]
    return {*_ceilings(pod, queue_of(pod, snapshot), found, snapshot)}


def borrows(pod: Object, snapshot: Snapshot) -> bool:
    """Whether a queue that pays for it would be over its quota with it."""
    tree = tree_of(snapshot)
    used = usage([*charges(snapshot), *_promises(pod, snapshot)], tree)
    return any(
        used.get(owner, {}).get(resource, 0) + amount > tree.quota(owner, resource)
        for owner, amounts in adds(pod, queue_of(pod, snapshot), snapshot).items()
        for resource, amount in amounts.items()
    )


def is_gated(pod: Object) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())


def _promises(pod: Object, snapshot: Snapshot) -> Iterator[Charge]:
    """What others are to be charged who have no gate any more; a plugin counts it for a minute."""
    for each in snapshot.all("pods"):
        if waits(each) and not is_gated(each) and each is not pod:
            for owner, amounts in adds(each, queue_of(each, snapshot), snapshot).items():
                yield Charge(shown(each), uid(each), owner, amounts, is_non_preemptible(each))


def _reasons(pod: Object, snapshot: Snapshot) -> Iterator[str]:
    yield from _alone(pod, snapshot)
    if _lacks_others(pod, snapshot):
        yield "PodGroupIncomplete"


def _lacks_others(pod: Object, snapshot: Snapshot) -> bool:
    """Whether fewer of its group's pods are there than go at one time, or may come with it."""
    group = group_of(pod, snapshot)
    if group is None:
        return False
    members = members_of(group, snapshot)
    waiting = [each for each in members if waits(each) and each is not pod]
    coming = [each for each in waiting if not any(_alone(each, snapshot))]
    there = 1 + sum(map(is_placed, members)) + len(coming)
    return there < int(group["spec"].get("minMember") or 0)


def _alone(pod: Object, snapshot: Snapshot) -> Iterator[str]:
    """What keeps it, but for whether its group is complete."""
    queue = queue_of(pod, snapshot)
    yield from _of_queue(pod, queue, snapshot)
    if len(claims_of(pod, snapshot)) < len(pod["spec"].get("resourceClaims") or ()):
        yield "ClaimNotFound"
    if any(map(is_going, claims_of(pod, snapshot))):
        yield "ClaimNotFound"
    yield from _of_owners(pod, queue, snapshot)
    if has_another_queue(pod, queue, snapshot):
        yield "PodGroupQueueMismatch"
    yield from _ceilings(pod, queue, list(charges(snapshot)), snapshot)
    if not _fits_some_node(pod, snapshot) or not _is_enough_for_all(pod, snapshot):
        yield NO_DEVICE


def _of_queue(pod: Object, queue: str, snapshot: Snapshot) -> Iterator[str]:
    tree = tree_of(snapshot)
    namespace = snapshot.get("namespaces", pod["metadata"]["namespace"]) or {"metadata": {}}
    named = annotation(pod, QUEUE) or label(pod, QUEUE)
    if not named and annotation(pod, POD_GROUP) and not group_of(pod, snapshot):
        # Whether it was there nobody knows who came later.
        yield from ("Gone", "NotKnownYet")
    elif not queue:
        yield "NoQueue"
    elif any(is_going(tree.queues[each]) for each in tree.path(queue)) or queue not in tree.queues:
        yield "QueueNotFound"
    elif not tree.admits(queue, namespace):
        yield "QueueNotAllowed"


def _of_owners(pod: Object, queue: str, snapshot: Snapshot) -> Iterator[str]:
    tree = tree_of(snapshot)
    owners = {label(claim, QUEUE) for claim in claims_of(pod, snapshot)} - {"", queue}
    if not owners <= {*tree.queues}:
        yield "QueueNotFound"
    if any(not tree.shares(owner, queue) for owner in owners):
        yield "ClaimSharingDenied"
    if owners and is_non_preemptible(pod):
        yield "ForeignNonPreemptible"


def _ceilings(
    pod: Object, queue: str, found: Iterable[Charge], snapshot: Snapshot
) -> Iterator[str]:
    """What a pod adds, and those that have to go with it, beside what is found charged."""
    tree, members = tree_of(snapshot), party(pod, snapshot)
    added = _together(adds(each, queue, snapshot) for each in members)
    if _is_passed(added, usage(found, tree), tree, tree.ceiling):
        yield "OverLimit"
    if is_non_preemptible(pod):
        held = usage((charge for charge in found if charge.is_non_preemptible), tree)
        added = _together(adds_held(each, queue, snapshot) for each in members)
        if _is_passed(added, held, tree, tree.quota):
            yield "NonPreemptibleOverQuota"


def _is_passed(
    added: Mapping[str, Amounts],
    used: Mapping[str, Amounts],
    tree: Tree,
    ceiling: Callable[[str, str], float],
) -> bool:
    return any(
        used.get(each, {}).get(resource, 0) + amount > ceiling(each, resource)
        for owner, amounts in added.items()
        for resource, amount in amounts.items()
        for each in tree.path(owner)
        if each == owner or tree.lists(each, resource)
    )


def _together(additions: Iterable[Mapping[str, Amounts]]) -> dict[str, Amounts]:
    found: dict[str, Counter[str]] = {}
    for each in additions:
        for owner, added in each.items():
            found.setdefault(owner, Counter()).update(added)
    return {owner: dict(amounts) for owner, amounts in found.items()}


def party(pod: Object, snapshot: Snapshot) -> list[Object]:
    """A pod and as many others that wait as its group needs beside those that run."""
    group = group_of(pod, snapshot)
    if group is None:
        return [pod]
    members = members_of(group, snapshot)
    others = [each for each in members if waits(each) and each is not pod]
    least = int(group["spec"].get("minMember") or 0) - sum(map(is_placed, members))
    return [pod, *others[: max(0, least - 1)]]


def adds(pod: Object, queue: str, snapshot: Snapshot) -> dict[str, Amounts]:
    """What a pod would add to each queue that pays: claims that nobody is charged for yet.

    Of a binding that never came a claim may have a device, and no owner.
    """
    found: dict[str, Counter[str]] = {}
    for claim in claims_of(pod, snapshot):
        if not (allocation(claim) and label(claim, QUEUE)):
            amounts = cost(claim, snapshot) if allocation(claim) else asked(claim, snapshot)
            found.setdefault(label(claim, QUEUE) or queue, Counter()).update(amounts)
    slots = by_resource(slots_asked(pod), snapshot)
    if slots:
        found.setdefault(queue, Counter()).update(slots)
    return {owner: dict(amounts) for owner, amounts in found.items()}


def adds_held(pod: Object, queue: str, snapshot: Snapshot) -> dict[str, Amounts]:
    """The same of what non-preemptible pods have: the first of its owner's makes a claim theirs."""
    found = {owner: Counter(added) for owner, added in adds(pod, queue, snapshot).items()}
    mine = {charge.uid: charge for charge in charges(snapshot) if charge.queue == queue}
    for claim in claims_of(pod, snapshot):
        charge = mine.get(claim["metadata"]["uid"])
        if charge and not charge.is_non_preemptible:
            found.setdefault(queue, Counter()).update(charge.amounts)
    return {owner: dict(amounts) for owner, amounts in found.items()}


def asked(claim: Object, snapshot: Snapshot) -> Amounts:
    """What a claim without devices asks for, and may be charged at most."""
    amounts = Counter(asked_of_ours(claim))
    for request in asked_of_vendors(claim):
        amounts.update(most_asked(request, tree_of(snapshot), snapshot))
    return dict(amounts)


def asked_of_ours(claim: Object) -> Amounts:
    """What a claim asks of Moorage's devices, each with one slot."""
    amounts: Counter[str] = Counter()
    for exactly in first_choices(claim):
        if exactly["deviceClassName"] not in VENDORS:
            amounts[resource_of(exactly["deviceClassName"])] += int(exactly.get("count", 1))
    return dict(amounts)


def _fits_some_node(pod: Object, snapshot: Snapshot) -> bool:
    asked_slots = slots_asked(pod)
    needed = Counter(by_resource(asked_slots, snapshot))
    if needed.total() < sum(asked_slots.values()):
        return False
    nodes = ready_nodes(snapshot)
    wanted = (pod["spec"].get("nodeSelector") or {}).get("kubernetes.io/hostname")
    if wanted:
        nodes &= {wanted}
    of_vendors: list[Object] = []
    for claim in claims_of(pod, snapshot):
        if allocation(claim):
            nodes &= _nodes_of_users(claim, snapshot) or nodes
        else:
            needed.update(asked_of_ours(claim))
            of_vendors += asked_of_vendors(claim)
    free = list(free_devices(snapshot))
    return any(
        are_free(of_vendors, node, snapshot)
        and all(
            sum(f.resource == r and (f.nodes is None or node in f.nodes) for f in free) >= amount
            for r, amount in needed.items()
        )
        for node in nodes
    )


def _is_enough_for_all(pod: Object, snapshot: Snapshot) -> bool:
    """Whether there is as much as a group needs in all; where is not looked at."""
    needed: Counter[str] = Counter()
    for each in party(pod, snapshot):
        for added in adds(each, "", snapshot).values():
            needed.update(added)
    free: Counter[str] = Counter()
    for device in free_devices(snapshot):
        free[device.resource] += device.slots
    tree = tree_of(snapshot)
    ours = ((each, amount) for each, amount in needed.items() if not tree.is_measured(each))
    return all(free[resource] >= amount for resource, amount in ours)


def _nodes_of_users(claim: Object, snapshot: Snapshot) -> set[str]:
    """Where a claim's devices are, if only one node has them."""
    selector = (allocation(claim) or {}).get("nodeSelector") or {}
    return {
        value
        for term in selector.get("nodeSelectorTerms") or ()
        for e in (*(term.get("matchFields") or ()), *(term.get("matchExpressions") or ()))
        for value in e.get("values") or ()
    }
