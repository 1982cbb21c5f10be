"""The read-only view of the world, and the trial, in which decisions are tried."""

from __future__ import annotations

from collections.abc import Container, Mapping

from scheduler_plugin.accounting.assumed import AssumptionsView
from scheduler_plugin.accounting.assumptions import Assumptions
from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.accounting.charges.ledger import Ledger
from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.objects.amounts import Charges, summed
from scheduler_plugin.objects.names import PodUid, QueueName


class WorldView(BooksView):
    """The facts, the ledger and the assumptions.

    Attributes:
        unmet: The queues whose quota cannot be met, each with why.
    """

    unmet: Mapping[QueueName, str]
    _assumptions: Assumptions
    _deleted: Container[PodUid]

    @property
    def assumptions(self) -> AssumptionsView:
        return self._assumptions

    def may_be_bound(self, uid: PodUid) -> bool:
        """Whether a pod may still be bound; the plugin may know more than kube-scheduler here."""
        pod = self.facts.pod(uid)
        return uid not in self._deleted if pod is None else pod.may_be_bound

    def held(self, queue: QueueName) -> Charges:
        """What is held for pods of a queue and its descendants."""
        path, holds = self.facts.tree.path, self.assumptions.holds
        return summed(hold.usage for hold in holds if queue in path(hold.queue))

    def trial(self) -> Trial:
        """An overlay of this world in which decisions are tried; its cost is that of those."""
        books = (self._facts, self._ledger)
        return Trial(books, self.unmet, self._assumptions.trial(), self._deleted)


class DecidingWorld(WorldView):
    """A world in which a pod may be assumed to be bound."""

    @property
    def assumptions(self) -> Assumptions:
        return self._assumptions


class Trial(DecidingWorld):
    """A world whose assumptions are an overlay and are discarded with it.

    It shares the facts and the ledger with its world, so it must not be used after they changed.
    """

    def __init__(
        self,
        books: tuple[Facts, Ledger],
        unmet: Mapping[QueueName, str],
        assumptions: Assumptions,
        deleted: Container[PodUid],
    ) -> None:
        self._facts, self._ledger = books
        self.unmet, self._assumptions, self._deleted = unmet, assumptions, deleted
