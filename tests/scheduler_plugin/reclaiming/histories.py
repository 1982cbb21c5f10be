"""How the checkers of histories are checked themselves."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

FOUND = settings(
    max_examples=2000,
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""With which a line of the product that is broken on purpose has to be found."""
