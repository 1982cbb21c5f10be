"""The read-only view of the books."""

from __future__ import annotations

from scheduler_plugin.accounting.charges.ledger import Ledger
from scheduler_plugin.accounting.charges.ledger_views import LedgerView
from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.accounting.facts_views import FactsView


class BooksView:
    """The facts, and the ledger that follows from them."""

    _facts: Facts
    _ledger: Ledger

    @property
    def facts(self) -> FactsView:
        return self._facts

    @property
    def ledger(self) -> LedgerView:
        return self._ledger
