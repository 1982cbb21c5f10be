"""The interface of the rules of a verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.objects.names import Reason


class Rule(ABC):
    """One reason to refuse a pod. A rule has no state.

    Attributes:
        reason: The reason of its refusals, unique to the rule.
        meaning: When it refuses, in Markdown: a row of the documentation's table.
        is_final: Whether later rules cannot be evaluated if it refuses.
    """

    reason: ClassVar[Reason]
    meaning: ClassVar[str]
    is_final: ClassVar[bool] = False

    @abstractmethod
    def refusals(self, case: Case) -> Iterator[str]:
        """Why it refuses, one sentence for each claim; the verdict has the first one.

        It yields nothing if the rule does not refuse. Each verdict calls it, so it must build no
        text before it is known to refuse.
        """

    @abstractmethod
    def why_satisfied(self, case: Case) -> str:
        """A sentence about a case that it does not refuse, with the figures it depends on."""

    @abstractmethod
    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        """What mends a refusal; any one of the sentences is enough for this rule.

        Claims and pods of namespaces that `may_name` does not allow are counted, but not named.
        """
