"""Under which names loopback is asked: its own, whatever stands for 127.0.0.1 somewhere."""

from __future__ import annotations

import pytest

from kube.loopback import is_loopback, why_not_under


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("::", False),
        ("0.0.0.0", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_loopback_is_an_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    "named",
    [
        *("localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:10262", "127.0.0.2:1"),
        *("[::1]", "[::1]:10262", "[::ffff:127.0.0.1]:80"),
    ],
)
def test_its_own_names_are_answered_with_any_port(named: str) -> None:
    assert why_not_under(named) == ""


@pytest.mark.parametrize(
    "named",
    [
        *("evil.example", "evil.example:10262", "localhost.evil.example", "127.0.0.1.evil.example"),
        *("10.0.0.7:10262", "[fe80::1]", "0.0.0.0:10262", "evil@127.0.0.1", "127.0.0.1/evil"),
        *("", ":10262", "127.0.0.1:port", "[::1", "127.0.0.1\t", "\u2024"),
    ],
)
def test_any_other_is_refused_with_what_to_ask_for(named: str) -> None:
    said = why_not_under(named)

    assert said.startswith(f'"{named}" is not a name of this loopback address: ask for')
    assert "localhost, 127.0.0.1 or [::1]" in said
