"""Reclaim where no queue has a part in what is left beyond quotas: all weights are 0.

Then whatever is beyond a quota is beyond the share. Such there is where a quota or a weight fell
after pods were bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_plugin.reclaiming.wants import Nobody
from tests.scheduler_plugin.builders import a_queue, a_world, put
from tests.scheduler_plugin.reclaiming import test_devices
from tests.scheduler_plugin.reclaiming.devices_builders import a_slice_object
from tests.scheduler_plugin.reclaiming.test_devices import a_cluster
from tests.scheduler_plugin.reclaiming.test_room import decided, taken, use, waiting

LENDERS = ("cams", "robots", "tests")


def a_full_world(mine: int, used: Mapping[str, int], **of: Any) -> Any:
    """All of the root's is used; `of` are by queue its quota, and maybe its priority."""
    total = sum(used.values())
    queues = [a_queue("root", onvif=(total, total, 0))]
    queues += [a_queue("mine", parent="root", onvif=(mine, total, 0))]
    for name in LENDERS:
        quota, priority = of.get(name, (0, 0))
        queues.append(a_queue(name, parent="root", priority=priority, onvif=(quota, total, 0)))
    claims = [use(queue, f"{queue}{n}") for queue, count in used.items() for n in range(count)]
    return a_world(*queues, *(one for found in (*claims, waiting()) for one in found))


@pytest.mark.parametrize("most", LENDERS)
def test_the_queue_with_the_most_beyond_its_quota_gives_first(most: str) -> None:
    used = {name: 3 if name == most else 1 for name in LENDERS}

    (gone,) = taken(a_full_world(1, used))

    assert gone.startswith(most)


@pytest.mark.parametrize("most", LENDERS)
def test_of_devices_it_is_the_same(most: str) -> None:
    """No limit is reached: the devices are what is lacking."""
    owners = sorted([*LENDERS, most, most])
    queues = [a_queue(name, onvif=(0, -1, 0)) for name in LENDERS]
    queues.append(a_queue("mine", onvif=(1, -1, 0)))
    claims = [test_devices.use(owner, f"{owner}{n}", on=f"d{n}") for n, owner in enumerate(owners)]
    slices = [a_slice_object(*(f"d{n}" for n in range(len(owners))))]

    cluster = a_cluster(*claims, test_devices.waiting(), slices=slices, queues=queues)

    (gone,) = cluster.taken()
    assert gone.startswith(most)


@pytest.mark.parametrize("least", LENDERS)
def test_a_queue_of_a_smaller_priority_gives_before_that(least: str) -> None:
    used = {name: 1 if name == least else 3 for name in LENDERS}
    of = {name: (0, 1 if name == least else 2) for name in LENDERS}

    (gone,) = taken(a_full_world(1, used, **of))

    assert gone.startswith(least)


def test_nobody_beyond_its_quota_gets_anything_by_force() -> None:
    used = dict.fromkeys(LENDERS, 2)
    assert taken(a_full_world(0, used)) == []

    world = a_full_world(1, {**used, "mine": 1})
    assert taken(world) == []

    put(world, a_queue("mine", parent="root", onvif=(2, 7, 0)))
    assert len(taken(world)) == 1


@settings(deadline=None)
@given(
    mine=st.integers(0, 1),
    used=st.fixed_dictionaries({name: st.integers(0, 3) for name in LENDERS}),
    of=st.fixed_dictionaries(
        {name: st.tuples(st.integers(0, 2), st.integers(0, 1)) for name in LENDERS}
    ),
)
def test_each_quota_is_met_and_kept(mine: int, used: dict[str, int], of: dict[str, Any]) -> None:
    over = {
        name: (-priority, used[name] - quota)
        for name, (quota, priority) in of.items()
        if used[name] > quota
    }

    world = a_full_world(mine, used, **of)

    if not mine or not over:
        assert isinstance(decided(world), Nobody)
    else:
        (gone,) = taken(world)
        assert over[gone[:-1]] == max(over.values())
