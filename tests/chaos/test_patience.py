"""What is found at rest is reported once it has stayed; what a leader clears, under one leader."""

from __future__ import annotations

from tests.chaos.findings import Finding
from tests.chaos.patience import LEFT_OVER_SECONDS, SECONDS, Patience

LEFT = Finding("left-over", "claim a/b", "no pod has reserved its devices")
OWNED = Finding("one-owner", "claim a/b", "no queue owns it")


def test_a_finding_is_reported_once_it_has_stayed() -> None:
    patience = Patience()
    assert not patience.look([OWNED], "a", 0)
    assert not patience.look([OWNED], "a", SECONDS - 1)
    assert patience.look([OWNED], "a", SECONDS) == [OWNED]


def test_a_finding_that_went_meanwhile_begins_again() -> None:
    patience = Patience()
    patience.look([OWNED], "a", 0)
    patience.look([], "a", 1)
    assert not patience.look([OWNED], "a", SECONDS)


def test_what_is_left_over_has_the_grace_of_one_leader() -> None:
    patience = Patience()
    patience.look([LEFT], "a", 0)
    assert not patience.look([LEFT], "b", LEFT_OVER_SECONDS)
    assert patience.look([LEFT], "b", 2 * LEFT_OVER_SECONDS) == [LEFT]


def test_another_leader_changes_nothing_for_the_other_findings() -> None:
    patience = Patience()
    patience.look([OWNED, LEFT], "a", 0)
    assert patience.look([OWNED, LEFT], "b", SECONDS) == [OWNED]


def test_what_is_left_over_is_looked_at_again_at_the_next_rest() -> None:
    patience = Patience()
    patience.look([OWNED, LEFT], "a", 0)
    assert patience.overdue() == [OWNED]
