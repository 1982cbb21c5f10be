"""What each rule of a verdict says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.objects.names import Reason


class Rule(ABC):
    """One reason to refuse a pod. It holds no state: a rule is asked about a case.

    Attributes:
        reason: Of its refusals; no two rules share one.
        meaning: When it refuses, in Markdown: a row of the documentation's table.
        ends: Whether its refusal leaves later rules nothing to look at.
    """

    reason: ClassVar[Reason]
    meaning: ClassVar[str]
    ends: ClassVar[bool] = False

    @abstractmethod
    def refusals(self, case: Case) -> Iterator[str]:
        """Why it refuses, claim by claim: the first sentence is the verdict's. None: it passes.

        Each verdict asks for them: nothing may be built before the rule is known to refuse.
        """

    @abstractmethod
    def passes(self, case: Case) -> str:
        """What it says of a case that it does not refuse, with the figures that it looked at."""

    @abstractmethod
    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        """What would have to change where it refuses; any one of these does for this rule.

        Claims and pods of a namespace that `may_name` does not allow are counted only.
        """
