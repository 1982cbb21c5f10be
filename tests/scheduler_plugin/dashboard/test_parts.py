"""What viewers must be allowed to list."""

from __future__ import annotations

from scheduler_plugin.dashboard import parts


def test_every_part_takes_a_kind() -> None:
    assert set(parts.SHOWS) == set(parts.Part)
