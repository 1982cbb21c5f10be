"""What is not modelled costs one eviction at most for each kind of pods and each node."""

from __future__ import annotations

import pytest

from tests.scheduler_plugin.reclaiming.unmodelled_worlds import UnmodelledWorld

WORLDS = 400


@pytest.mark.parametrize("part", range(8))
def test_in_drawn_worlds_evictions_in_vain_end_and_whoever_can_be_served_is(part: int) -> None:
    """`bench.vain_evictions` draws 2,000 of them, these among them."""
    for seed in range(part, WORLDS, 8):
        world = UnmodelledWorld(seed)

        world.play()

        assert max(world.in_vain.values(), default=0) <= 1, seed
        assert not world.could_be_served(), seed
        assert world.told.keys() == world.waiting.keys(), seed
