"""What has to hold at the moment at which a pod gets its node.

etcd numbers all writes in one row, so changes of pods, claims and queues that were watched apart
are put in order by their resource versions: the state before each binding is known exactly. What
the scheduler plugin knows of Queues is some moments old, so it may judge by any that was in force
within `SLACK_SECONDS`; of claims it may not, since nobody but itself charges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field

from tests.chaos.charges import Charge, charges, slots_asked, tree_of, usage
from tests.chaos.findings import Finding
from tests.chaos.measures import REMEMBERED, devices_of, lost_notes
from tests.chaos.objects import (
    QUEUE,
    Key,
    Object,
    Snapshot,
    claims_of,
    is_non_preemptible,
    is_placed,
    label,
    node_of,
    queue_of,
    reserved_for,
    results,
    shown,
    uid,
)
from tests.chaos.queue_tree import Tree

SLACK_SECONDS = 10.0


@dataclass(frozen=True)
class Change:
    """One change of an object, as a watch told it.

    Attributes:
        version: Its place in the row of all changes.
        at: When it was heard of, in seconds of some clock.
        kind: The plural.
        key: Namespace and name.
        after: The object, or nothing if it is gone.
        is_exact: Whether nothing was missed before it.
    """

    version: int
    at: float
    kind: str
    key: Key
    after: Object | None
    is_exact: bool = True


@dataclass
class History:
    """Folds changes, and judges each binding by what was there just before it."""

    objects: dict[str, dict[Key, Object]] = field(default_factory=dict)
    devices: dict[Key, Object] = field(default_factory=dict)
    """Those of vendors that were published at any time."""
    instances: dict[Key, Object] = field(default_factory=dict)
    """Those that are gone, too: a container keeps the device that it was given."""
    trees: list[tuple[float, Tree]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """The UIDs of claims that a pod used, or may have used, since they were allocated."""

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot({**self.objects, REMEMBERED: self.devices})

    def judge(self, changes: Iterable[Change]) -> Iterator[Finding]:
        """Findings of changes that come after all that were folded before."""
        for change in sorted(changes, key=lambda each: each.version):
            before = self.objects.setdefault(change.kind, {}).get(change.key)
            self._fold(change)
            after = change.after if change.is_exact else None
            if after and change.kind == "pods" and is_bound_by(before, after):
                yield from self._bound(after, change.at)
            if after and change.kind == "resourceclaims":
                yield from lost_notes(before, after, self.snapshot)
            self._remember_users(change)

    def _remember_users(self, change: Change) -> None:
        """A claim stays charged after its pods ended, for as long as it keeps its devices.

        Of one that has devices when it is listed it is not known whether pods used it before.
        """
        body = change.after
        if change.kind == "resourceclaims" and body and not results(body):
            self.used.discard(uid(body))
        elif change.kind == "resourceclaims" and body and not change.is_exact:
            self.used.add(uid(body))
        if change.kind == "pods" and body and is_placed(body):
            self.used |= {uid(each) for each in claims_of(body, self.snapshot) if results(each)}

    def _fold(self, change: Change) -> None:
        known = self.objects[change.kind]
        if change.after is None:
            known.pop(change.key, None)
        else:
            known[change.key] = change.after
        if change.kind == "instances" and change.after:
            self.instances[change.key] = change.after
        if change.kind == "resourceslices" and change.after:
            self.devices |= devices_of(change.after)
        if change.kind == "queues":
            self.trees.append((change.at, tree_of(self.snapshot)))

    def _bound(self, pod: Object, at: float) -> Iterator[Finding]:
        trees = self._trees(at)
        snapshot = self.snapshot
        for claim in claims_of(pod, snapshot):
            if results(claim):
                yield from _joined(pod, claim, trees, snapshot)
        yield from _ceilings(pod, self.used, trees, snapshot)

    def _trees(self, at: float) -> list[Tree]:
        """Those that were in force within the slack: the last one before it, and all since."""
        old = [when for when, _ in self.trees if when < at - SLACK_SECONDS]
        since = max(old, default=float("-inf"))
        self.trees = [(when, tree) for when, tree in self.trees if when >= since]
        return [tree for _, tree in self.trees] or [tree_of(self.snapshot)]


def is_bound_by(before: Object | None, after: Object) -> bool:
    """Whether a pod got its node by this change, from a scheduler that has a ledger beside it."""
    fresh = before is not None and not node_of(before)
    return fresh and bool(node_of(after)) and after["spec"]["schedulerName"].startswith("moorage")


def _joined(pod: Object, claim: Object, trees: list[Tree], snapshot: Snapshot) -> Iterator[Finding]:
    owner, own = label(claim, QUEUE), queue_of(pod, snapshot)
    about = f"pod {shown(pod)}"
    what = f"ResourceClaim {shown(claim)}"
    if not owner:
        yield Finding("one-owner", about, f"it was bound, and {what} has no owner")
        return
    if uid(pod) not in reserved_for(claim, snapshot):
        yield Finding("one-owner", about, f"it was bound, and {what} is not reserved for it")
    if owner == own:
        return
    if is_non_preemptible(pod):
        sentence = f"it is non-preemptible and of queue {own}, and {what} is owned by {owner}"
        yield Finding("foreign-non-preemptible", about, sentence)
    if not any(tree.shares(owner, own) for tree in trees):
        sentence = f"it is of queue {own}, with which {owner} does not share {what}"
        yield Finding("opted-out", about, sentence)


def _ceilings(
    pod: Object, used: Set[str], trees: list[Tree], snapshot: Snapshot
) -> Iterator[Finding]:
    """Of what the pod adds: what others had before it adds nothing."""
    found = list(charges(snapshot))
    placed = {uid(each) for each in snapshot.all("pods") if is_placed(each)} - {uid(pod)}
    claims = {uid(each): each for each in claims_of(pod, snapshot) if results(each)}
    new = {u for u, each in claims.items() if not placed & {*reserved_for(each, snapshot)}} - used
    if slots_asked(pod):
        new.add(uid(pod))
    added = [charge for charge in found if charge.uid in new]
    yield from _over(pod, found, added, trees, "over-limit", Tree.ceiling)
    if is_non_preemptible(pod):
        held = [charge for charge in found if charge.is_non_preemptible]
        mine = [charge for charge in held if charge.uid in {*claims, uid(pod)}]
        yield from _over(pod, held, mine, trees, "non-preemptible-over-quota", Tree.quota)


def _over(
    pod: Object,
    found: list[Charge],
    added: list[Charge],
    trees: list[Tree],
    rule: str,
    ceiling: Callable[[Tree, str, str], float],
) -> Iterator[Finding]:
    last = trees[-1]
    for charge in added:
        for resource in charge.amounts:
            for queue in last.path(charge.queue):
                # An ancestor that does not list a resource does not check it.
                if queue != charge.queue and not last.lists(queue, resource):
                    continue
                used = [usage(found, tree).get(queue, {}).get(resource, 0) for tree in trees]
                most = [ceiling(tree, queue, resource) for tree in trees if queue in tree.queues]
                if min(used) > max(most):
                    what = f"queue {queue} then used {min(used)} {resource} of {max(most):g}"
                    sentence = f"{what}, {charge.what} among it"
                    yield Finding(rule, f"pod {shown(pod)}", sentence)
