"""Filters of details: Akri's rules as a table, and what is wrong with them."""

from __future__ import annotations

import pytest

from driver.api import Problem
from driver.discovery.filters import ACCEPT_ALL, Filter
from driver.discovery.onvif.details import OnvifDetails, parse_onvif_details

PATH = "spec.discoveryHandler.discoveryDetails"


@pytest.mark.parametrize(
    ("items", "include", "values", "accepted"),
    [
        # Akri's `execute_filter`, turned around: it says what is filtered out.
        ((), False, None, True),
        ((), False, (), True),
        ((), False, ("a",), True),
        ((), True, None, False),
        ((), True, ("a",), False),
        (("a",), True, None, False),
        (("a",), True, (), False),
        (("a",), True, ("a",), True),
        (("a",), True, ("b",), False),
        (("a", "b"), True, ("b", "c"), True),
        (("a",), False, None, False),
        (("a",), False, (), True),
        (("a",), False, ("a",), False),
        (("a",), False, ("b",), True),
        (("a", "b"), False, ("c", "b"), False),
        (("a",), True, ("aa",), False),
    ],
)
def test_what_is_accepted(
    items: tuple[str, ...], include: bool, values: tuple[str, ...] | None, accepted: bool
) -> None:
    assert Filter(items, include).accepts(values) is accepted


def test_details_of_akris_chart_are_taken() -> None:
    text = """
ipAddresses:
  action: Exclude
  items: []
macAddresses:
  action: Exclude
  items:
  - 00:12:41:F0:00:01
scopes:
  items: ["onvif://www.onvif.org/name/A"]
uuids:
  action: Include
  items: ["urn:uuid:ABC"]
discoveryTimeoutSeconds: 2
"""

    assert parse_onvif_details(text) == OnvifDetails(
        ip_addresses=ACCEPT_ALL,
        mac_addresses=Filter(("00:12:41:f0:00:01",), include=False),
        scopes=Filter(("onvif://www.onvif.org/name/A",)),
        uuids=Filter(("abc",)),
        timeout_seconds=2,
    )


@pytest.mark.parametrize("text", ["", "{}", "ipAddresses:", "ipAddresses: ~\nidentity: address"])
def test_everything_may_be_absent(text: str) -> None:
    assert parse_onvif_details(text) == OnvifDetails()


def test_identity_is_a_choice() -> None:
    assert parse_onvif_details("identity: uuid") == OnvifDetails(by_uuid=True)


@pytest.mark.parametrize(
    ("text", "path", "sentence"),
    [
        ("scopes: [a]", "scopes", "Line 1, column 9: fields are expected here: action, items."),
        ("scopes: {}", "scopes.items", "A list of strings must be given."),
        (
            "scopes: {items: a}",
            "scopes.items",
            "Line 1, column 17: a list of strings is expected here.",
        ),
        (
            "scopes: {items: [a, 1.5]}",
            "scopes.items[1]",
            "Line 1, column 21: a string is expected here; put it in quotes if it is one.",
        ),
        (
            "scopes: {items: [], action: include}",
            "scopes.action",
            'Line 1, column 29: "include" is none of Include, Exclude.',
        ),
        (
            "scopes: {item: []}",
            "scopes.item",
            "Line 1, column 10: unknown field; there are action, items.",
        ),
        (
            "discoveryTimeoutSeconds: 0",
            "discoveryTimeoutSeconds",
            "Line 1, column 26: a whole number from 1 to 60 is expected here.",
        ),
        (
            "discoveryTimeoutSeconds: '1'",
            "discoveryTimeoutSeconds",
            "Line 1, column 26: a whole number from 1 to 60 is expected here.",
        ),
        ("identity: mac", "identity", 'Line 1, column 11: "mac" is none of address, uuid.'),
    ],
)
def test_what_is_wrong_has_a_path_and_a_place(text: str, path: str, sentence: str) -> None:
    problems = parse_onvif_details(text)

    assert isinstance(problems, tuple)
    assert Problem(f"{PATH}.{path}", sentence) in problems
