"""Every rule of a verdict, whether it passes or not, with the figures that it looks at.

A verdict names the first rule that refuses; `why` shows the others as well. Rules that need the
pod's queue are not looked at where that is not there.
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
    """One rule, by the reason that a refusal of it has.

    Attributes:
        holds: None where it was not looked at, since an earlier one leaves nothing to look at.
        remedies: What would have to change where it does not hold; any one of these does.
    """

    reason: str
    holds: bool | None
    sentence: str
    remedies: tuple[str, ...] = ()


def rule_rows(case: Case, may_name: MayName = anyone) -> tuple[RuleRow, ...]:
    """All rules of one pod in their order. For `may_name` see `Rule.remedies`."""
    return tuple(_rows(case, may_name))


def _rows(case: Case, may_name: MayName) -> Iterator[RuleRow]:
    end: Rule | None = None
    for rule in RULES:
        row = _row(rule, end, case, may_name)
        if end is None and rule.ends and row.holds is False:
            end = rule
        yield row


def _row(rule: Rule, end: Rule | None, case: Case, may_name: MayName) -> RuleRow:
    """`end` is the rule that refused and leaves those after it nothing to look at, if any."""
    is_looked_at = end is None or rule in NAMED
    refusal = next(rule.refusals(case), None) if is_looked_at else None
    if refusal is not None:
        ways = tuple(rule.remedies(case, may_name))
        return RuleRow(reason=rule.reason, holds=False, sentence=refusal, remedies=ways)
    if end is not None:
        sentence = f"Not looked at: {end.reason} comes first."
        return RuleRow(reason=rule.reason, holds=None, sentence=sentence)
    return RuleRow(reason=rule.reason, holds=True, sentence=rule.passes(case))
