"""Every rule of a verdict, whether it passes, and its sentence with the figures.

A verdict names the first rule that refuses; `why` prints all rules. Rules that need the pod's queue
are not checked if the queue does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName, anyone
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.judging.rules.table import NAMED, RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One rule, by the reason of its refusals.

    Attributes:
        holds: Whether the rule passes; None if an earlier refusal left nothing to check.
        remedies: What would have to change if it does not pass; one of them is enough.
    """

    reason: str
    holds: bool | None
    sentence: str
    remedies: tuple[str, ...] = ()


def rule_rows(case: Case, may_name: MayName = anyone) -> tuple[RuleRow, ...]:
    """All rules of one pod, in their order; `may_name` is that of `Rule.remedies`."""
    return tuple(_rows(case, may_name))


def _rows(case: Case, may_name: MayName) -> Iterator[RuleRow]:
    end: Rule | None = None
    for rule in RULES:
        row = _row(rule, end, case, may_name)
        if end is None and rule.is_final and row.holds is False:
            end = rule
        yield row


def _row(rule: Rule, end: Rule | None, case: Case, may_name: MayName) -> RuleRow:
    """The row of a rule; `end` is the refusing rule after which nothing is checked, if any."""
    is_looked_at = end is None or rule in NAMED
    refusal = next(rule.refusals(case), None) if is_looked_at else None
    if refusal is not None:
        ways = tuple(rule.remedies(case, may_name))
        return RuleRow(reason=rule.reason, holds=False, sentence=refusal, remedies=ways)
    if end is not None:
        sentence = f"Not checked: {end.reason} comes first."
        return RuleRow(reason=rule.reason, holds=None, sentence=sentence)
    return RuleRow(reason=rule.reason, holds=True, sentence=rule.why_satisfied(case))
