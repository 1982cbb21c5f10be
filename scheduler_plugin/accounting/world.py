"""All that a verdict depends on, kept up to date by events.

    event ──► books: facts ──entries that depend on the change──► ledger ──► assumptions

The world is the books and the decisions in flight, which the API does not show yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachetools import FIFOCache

from scheduler_plugin.accounting.assumptions import Assumptions
from scheduler_plugin.accounting.books import Books
from scheduler_plugin.accounting.charges.owners import labelled_owner
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.label_edits import LabelEdit, is_edited
from scheduler_plugin.accounting.world_views import DecidingWorld
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    AccountingSettings,
    ClaimUid,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.pods import PodView

MOST_REMEMBERED = 10_000
"""How many deleted pods are remembered: more than kube-scheduler can be binding."""


class World(Books, DecidingWorld):
    """The books and the assumptions, with all their changes."""

    def __init__(self, settings: AccountingSettings | None = None) -> None:
        super().__init__(settings)
        self._assumptions = Assumptions(
            self.facts.tree.path, self.ledger.claim, ended=self._recount_claims
        )
        self.unmet = {}
        self._label_edits: dict[ClaimUid, LabelEdit] = {}
        self._regrouped: dict[ClaimUid, None] = {}
        self._deleted = self._gone = FIFOCache[PodUid, None](MOST_REMEMBERED)

    # Events of pods and claims that decisions in flight are about.

    def _awaits_binding(self, uid: PodUid) -> bool:
        return self.assumptions.awaits_binding(uid)

    def _note_pod(self, pod: PodView) -> None:
        # A restored backup may contain a deleted pod.
        self._gone.pop(pod.uid, None)
        if not pod.may_be_bound:
            self.assumptions.forget_with_hold(pod.uid)

    def _note_gone_pod(self, uid: PodUid) -> None:
        self._gone[uid] = None
        self.assumptions.forget_with_hold(uid)

    def put_pod(self, pod: PodView) -> None:
        before = self.facts.pod(pod.uid)
        super().put_pod(pod)
        if before is not None and _failed_with_its_group(before, pod):
            self.assumptions.forget(pod.uid)
        if pod.nominated and (before is None or before.nominated != pod.nominated):
            self.assumptions.found_node(pod.uid)

    def put_claim(self, claim: ClaimView) -> None:
        before = self.facts.claim(claim.uid)
        super().put_claim(claim)
        if before is not None and is_edited(before, claim) and self.ledger.claim(claim.uid):
            self._label_edits[claim.uid] = LabelEdit(claim, before.label)

    def delete_claim(self, uid: ClaimUid) -> None:
        is_known = self.facts.claim(uid) is not None
        super().delete_claim(uid)
        if is_known:
            self.assumptions.forget_claim(uid)
            self._label_edits.pop(uid, None)
            self._regrouped.pop(uid, None)

    def _note_regrouped(self, uid: ClaimUid) -> None:
        self._regrouped[uid] = None

    def _recount_claim(self, uid: ClaimUid) -> bool:
        claim = self.facts.claim(uid)
        if claim is not None and uid in self.assumptions:
            self.assumptions.relabel(uid, labelled_owner(claim, self.facts) or NO_QUEUE)
        is_another = super()._recount_claim(uid)
        if is_another:
            self.assumptions.recount(uid)
        return is_another

    def _follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        super()._follow(paths)
        self.assumptions.follow(paths)

    def take_label_edits(self) -> tuple[LabelEdit, ...]:
        """The claims whose label was edited since the last call; each edit is returned once."""
        edits = tuple(self._label_edits.values())
        self._label_edits.clear()
        return edits

    def take_regrouped(self) -> tuple[ClaimUid, ...]:
        """The claims whose users through PodGroups changed since the last call."""
        claims = tuple(self._regrouped)
        self._regrouped.clear()
        return claims

    # Holds, and quotas that cannot be met.

    def hold(self, hold: Hold) -> None:
        """Hold room for a pod until it is bound or deleted, or the hold is ended."""
        self.assumptions.hold(hold)
        self.ledger.touch(self.facts.tree.path(hold.queue))

    def end_hold(self, pod: PodUid) -> None:
        """End the hold for a pod, if there is one."""
        if (hold := self.assumptions.holds.end(pod)) is not None:
            self.ledger.touch(self.facts.tree.path(hold.queue))

    def report_unmet(self, unmet: Mapping[QueueName, str]) -> None:
        """Set the queues that are below their quota and cannot be given more, each with why."""
        changed = [n for n in {*unmet, *self.unmet} if unmet.get(n) != self.unmet.get(n)]
        self.unmet = unmet
        self.ledger.touch(changed)


def _failed_with_its_group(before: PodView, pod: PodView) -> bool:
    """Whether kube-scheduler just gave up a pod whose PodGroup it tries as a whole.

    Filter passed the pod, perhaps, and another pod of the group found no node: then none is bound.
    """
    return bool(pod.scheduling_group) and pod.unschedulable and not before.unschedulable
