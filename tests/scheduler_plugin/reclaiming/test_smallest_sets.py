"""No more go than have to: what is chosen in a small world, beside all that could be chosen.

The two checkers know the rules as the documentation says them, and ask the product nothing. Whoever
is chosen may go and is enough, nobody of them goes in vain, and no smaller set would do. Somebody
with foreign users goes only where no set without them would do, and nobody only where none would.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scheduler_plugin.builders import a_request
from tests.scheduler_plugin.reclaiming.devices_builders import a_device, a_slice_object
from tests.scheduler_plugin.reclaiming.sets_builders import (
    LENDERS,
    NODES,
    QUOTAS,
    Device,
    Holder,
    holders,
    may_go,
    new_devices,
    taken_of,
    taken_of_room,
    with_devices,
    with_slots,
)


def check(
    taken: Collection[str],
    there: Collection[Holder],
    quotas: Any,
    serves: Callable[[Collection[Holder]], bool],
) -> None:
    gone = [holder for holder in there if holder.name in taken]
    alone = [h for h in there if serves([h]) and may_go([h], there, quotas)]
    if not gone:
        assert serves(()) or not alone, "one could go, and would be enough"
        return
    assert not serves(()), "nobody has to go"
    assert serves(gone), "it is not enough"
    assert may_go(gone, there, quotas), "somebody may not go"
    assert not any(serves([h for h in gone if h is not one]) for one in gone), "one goes in vain"
    if own := [holder for holder in alone if not holder.is_foreign]:
        assert len(gone) == 1, "one would be enough"
        assert gone[0] in own, "one without foreign users would be enough"


def is_right(
    taken: Collection[str],
    there: Collection[Holder],
    quotas: Any,
    serves: Callable[[Collection[Holder]], bool],
) -> bool:
    """Whether these go, and no more than have to; nobody where no set could go and is enough."""
    if serves(()):
        return not taken
    those = [holder for holder in there if holder.name in taken]
    for foreign_too in (False, True):
        willing = [h for h in there if h.is_foreign <= foreign_too and not h.stays]
        for size in range(1, len(willing) + 1):
            sets = (set_ for set_ in combinations(willing, size) if serves(set_))
            if any(may_go(set_, there, quotas) for set_ in sets):
                is_one_of_them = {*those} <= {*willing} and len(those) == size
                return is_one_of_them and serves(those) and may_go(those, there, quotas)
    return not taken


@settings(max_examples=200, deadline=None)
@given(
    drawn=holders(st.integers(1, 3)),
    nodes=st.lists(st.sampled_from(["n", "n", "m"]), min_size=6, max_size=6),
    numas=st.lists(st.integers(0, 1), min_size=20, max_size=20),
    free=st.lists(st.sampled_from(NODES), max_size=2),
    wants=st.sampled_from(["All", 1, 2, 3, 4]),
    match=st.booleans(),
    quotas=QUOTAS,
)
def test_of_devices(
    drawn: Any, nodes: Any, numas: Any, free: Any, wants: Any, match: bool, quotas: Any
) -> None:
    match, device = match and wants != "All", new_devices(numas)
    there = with_devices(drawn, device, nodes)
    devices = [*(d for h in there for d in h.devices), *map(device, free)]

    def serves(gone: Collection[Holder]) -> bool:
        used = {d for holder in there if holder not in gone for d in holder.devices}
        return any(_is_enough([d for d in devices if d.node == node], used) for node in NODES)

    def _is_enough(on_node: list[Device], used: set[Device]) -> bool:
        left = [d for d in on_node if d not in used]
        if wants == "All":
            return bool(on_node) and left == on_node
        same = [[d for d in left if d.numa == value] for value in (0, 1)] if match else [left]
        return any(len(found) >= wants for found in same)

    asked = {"allocationMode": "All"} if wants == "All" else {"count": wants}
    bodies = {
        node: [
            a_device(d.name, attributes={"numa": {"int": d.numa}})
            for d in devices
            if d.node == node
        ]
        for node in NODES
    }
    slices = [a_slice_object(*found, node=node) for node, found in bodies.items() if found]

    taken = taken_of(there, quotas, a_request(**asked), *slices, match=match)

    check(taken, there, quotas, serves)
    assert is_right(taken, there, quotas, serves)


@settings(max_examples=120, deadline=None)
@given(
    drawn=holders(st.integers(1, 3)), free=st.integers(0, 2), wants=st.integers(1, 6), quotas=QUOTAS
)
def test_of_slots(drawn: Any, free: int, wants: int, quotas: Any) -> None:
    there = with_slots(drawn)
    capacity = free + sum(holder.slots for holder in there)
    shared = a_slice_object(a_device("shared", slots=capacity))

    def serves(gone: Collection[Holder]) -> bool:
        return free + sum(holder.slots for holder in gone) >= wants

    taken = taken_of(there, quotas, a_request(slots=wants), shared)

    check(taken, there, quotas, serves)
    assert is_right(taken, there, quotas, serves)


@settings(max_examples=150, deadline=None)
@given(drawn=holders(st.integers(1, 3)), wants=st.integers(1, 6), quotas=QUOTAS)
def test_of_room(drawn: Any, wants: int, quotas: Any) -> None:
    there = with_devices(drawn, new_devices())

    taken = taken_of_room(there, quotas, wants)

    assert is_right(taken, there, quotas, lambda gone: sum(h.cost for h in gone) >= wants)


FEW = [
    ((2, 1, 1, 3), 5, [0, 3]),
    ((1, 1, 1, 1, 4), 5, [0, 4]),
    ((1, 1, 2, 2, 2), 4, [2, 3]),
    ((1, 1, 1, 2, 3, 3), 6, [4, 5]),
    # Those after the first 32 are not looked at.
    ((*[1] * 32, 2, 2), 4, [0, 1, 2, 3]),
]
NO_QUOTAS = dict.fromkeys(LENDERS, 0)


@pytest.mark.parametrize(("has", "wants", "go"), FEW)
def test_fewer_go_where_fewer_are_enough(has: tuple[int, ...], wants: int, go: list[int]) -> None:
    assert those_who_go(has, wants, NO_QUOTAS) == [go] * 3


SPARE = [
    ((1, 2), 2, 1, [1]),
    ((1, 1, 1, 1, 2), 5, 1, [0, 1, 2, 4]),
    ((1, 2, 2), 4, 1, [1, 2]),
    ((1, 3, 3), 4, 2, [0, 1]),
    ((2, 2), 3, 1, []),
]


@pytest.mark.parametrize(("has", "wants", "quota", "go"), SPARE)
def test_others_go_where_the_first_are_what_their_queue_can_spare_and_are_not_enough(
    has: tuple[int, ...], wants: int, quota: int, go: list[int]
) -> None:
    assert those_who_go(has, wants, {**NO_QUOTAS, "b": quota}) == [go] * 3


def those_who_go(has: tuple[int, ...], wants: int, quotas: Any) -> list[list[int]]:
    """Of one queue, the first of them the first to go: of devices, of slots, and of room."""
    drawn = [("b", n, False, False, amount) for n, amount in enumerate(has)]
    there, by_slots = with_devices(drawn, new_devices()), with_slots(drawn)
    devices = a_slice_object(*(d.name for holder in there for d in holder.devices))
    shared = a_slice_object(a_device("shared", slots=sum(has)))
    found = (
        taken_of(there, quotas, a_request(count=wants), devices),
        taken_of(by_slots, quotas, a_request(slots=wants), shared),
        taken_of_room(there, quotas, wants),
    )
    return [sorted(int(name[1:]) for name in names) for names in found]
