"""Names that stood for nothing a moment ago."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webhook.absences import Absences

SECONDS = 1.0


def test_a_name_is_absent_for_a_moment_and_no_longer() -> None:
    absences = Absences(SECONDS)
    assert not absences.has("a", 0.0)

    absences.add("a", 0.0)

    assert absences.has("a", 0.9)
    assert not absences.has("a", 1.0)
    assert not absences.has("b", 0.0)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.0, 2.0)), max_size=40),
    st.integers(1, 4),
)
def test_it_knows_the_latest_names_and_never_more_than_it_may(
    looks: list[tuple[str, float]], most: int
) -> None:
    absences, now, entered = Absences(SECONDS, most), 0.0, list[tuple[str, float]]()
    for name, pause in looks:
        now += pause
        absences.add(name, now)
        entered = [entry for entry in entered if entry[0] != name] + [(name, now)]
        expected = {known for known, at in entered[-most:] if now < at + SECONDS}
        assert {known for known in "abcdef" if absences.has(known, now)} == expected
        assert len(absences._until) <= most
