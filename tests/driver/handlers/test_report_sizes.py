"""Answers are counted: of a handler, of all of a node, and of those without privileges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName
from driver.handlers.registrations import Endpoint, Registration
from driver.handlers.report_limits import BYTES_OF_A_DEVICE, Amount, HandlerLimits
from driver.handlers.report_sizes import Reported

LIMITS = HandlerLimits(most_devices=8, node_devices=12)
"""Ten for handlers with privileges, two for the others."""

SHELF, ATTIC = ConfigurationName("shelf"), ConfigurationName("attic")


def a_handler(name: str, *, unprivileged: bool = False) -> Registration:
    endpoint = Endpoint(name, f"/{name}.sock")
    return Registration(endpoint, network=False, shared=False, unprivileged=unprivileged)


ONE, OTHER = a_handler("one"), a_handler("other")
STRANGER = a_handler("onvif", unprivileged=True)


def say(
    reported: Reported, who: Registration, devices: int, name: ConfigurationName = SHELF
) -> str:
    """A handler answers; returns why that does not count, or ""."""
    amount = Amount(devices, devices)
    if why := reported.excess(who, name, amount):
        return why
    reported.enter(who, name, amount)
    return ""


def test_a_handler_has_a_limit_over_all_configurations() -> None:
    reported = Reported(LIMITS)

    assert say(reported, ONE, 6) == ""
    assert "It reports more than 8 devices" in say(reported, ONE, 3, ATTIC)
    assert say(reported, ONE, 2, ATTIC) == ""


def test_all_handlers_together_have_a_limit_and_who_was_first_has_it() -> None:
    reported = Reported(LIMITS)

    assert say(reported, ONE, 8) == ""
    assert "with privileges report more than 10 devices" in say(reported, OTHER, 3)
    assert say(reported, OTHER, 2) == ""
    assert say(reported, ONE, 7) == "", "a new answer counts instead of the last"
    assert say(reported, OTHER, 3) == ""


def test_bytes_are_counted_too() -> None:
    reported, most = Reported(LIMITS), 10 * BYTES_OF_A_DEVICE
    reported.enter(ONE, SHELF, Amount(1, most))

    assert reported.excess(OTHER, SHELF, Amount(0, 1)) is not None
    assert reported.excess(ONE, SHELF, Amount(1, most)) is None


def test_handlers_without_privileges_have_their_share_and_no_more() -> None:
    reported = Reported(LIMITS)

    assert "without privileges report more than 2 devices" in say(reported, STRANGER, 3)
    assert say(reported, STRANGER, 2) == ""
    assert say(reported, ONE, 8) == ""
    assert say(reported, OTHER, 2) == ""


def test_what_is_gone_counts_no_more() -> None:
    reported = Reported(LIMITS)
    say(reported, ONE, 8)
    say(reported, STRANGER, 2)

    reported.keep(lambda endpoint, _: endpoint != ONE.endpoint)

    assert say(reported, OTHER, 8) == ""
    assert say(reported, a_handler("opcua", unprivileged=True), 1) != ""


answers = st.tuples(
    st.sampled_from([ONE, OTHER, STRANGER, a_handler("opcua", unprivileged=True)]),
    st.sampled_from([SHELF, ATTIC]),
    st.integers(0, 12),
)


@given(st.lists(answers))
def test_no_history_of_answers_exceeds_what_a_node_may_have(
    history: list[tuple[Registration, ConfigurationName, int]],
) -> None:
    reported, counted = Reported(LIMITS), dict[tuple[Registration, ConfigurationName], int]()
    for who, name, devices in history:
        alone = {at: n for at, n in counted.items() if at != (who, name)}
        if say(reported, who, devices, name) == "":
            counted[who, name] = devices
        else:
            share = 2 if who.unprivileged else 10
            alike = sum(n for at, n in alone.items() if at[0].unprivileged == who.unprivileged)
            own = sum(n for at, n in alone.items() if at[0] == who)
            assert devices + own > 8 or devices + alike > share
    for unprivileged, share in ((True, 2), (False, 10)):
        assert sum(n for at, n in counted.items() if at[0].unprivileged is unprivileged) <= share
