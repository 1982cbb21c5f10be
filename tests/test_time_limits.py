"""The page of time limits finds them in the code, in whatever form they are written."""

from __future__ import annotations

import ast

from tests import reference, time_limits

SOURCE = '''
FIRST_SECONDS = 0.5
LONGEST_SECONDS = 3600.0
"""Between two attempts; never longer. More of it."""

MOST = 5
GRACE = timedelta(minutes=90)
_AGAIN = Backoff(first_seconds=0.2, cap_seconds=10.0)

class Pace:
    """How fast.

    Attributes:
        look_seconds: How often
            it is looked at. Always.
    """

    look_seconds: float = 2.0
    watch_seconds: tuple[int, int] = (300, 600)
    no_grace: timedelta = timedelta()
'''


def test_a_time_is_a_constant_or_field_that_is_named_or_typed_so() -> None:
    assert list(time_limits.constants(ast.parse(SOURCE))) == [
        ("FIRST_SECONDS", "500 ms", ""),
        ("LONGEST_SECONDS", "1 h", "Between two attempts"),
        ("GRACE", "90 min", ""),
        ("_AGAIN", "backoff 200 ms to 10 s", ""),
        ("Pace.look_seconds", "2 s", "How often it is looked at."),
        ("Pace.watch_seconds", "5 min to 10 min", ""),
    ]


def test_the_page_has_flags_what_is_deployed_and_each_component() -> None:
    page = reference.time_limits_page()

    assert "| `moorage-driver shared --lost-node-grace` | `5m` |" in page
    assert "leaderElection.leaseDuration` | 15s |" in page
    assert "startupProbe.failureThreshold` | 300 times |" in page
    for component in time_limits.COMPONENTS:
        assert f"| `{component}/" in page.partition(f"\n## {component}\n")[2]
