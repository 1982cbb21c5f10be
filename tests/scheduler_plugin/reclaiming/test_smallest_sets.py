"""No more go than have to: what is chosen in a small world, beside all that could be chosen.

The two checkers know the rules as the documentation says them, and ask the product nothing. Whoever
is chosen may go and is enough, nobody of them goes in vain, and of the same standing no smaller set
is enough. Where one alone would be, one goes, without foreign users if there is such; nobody with
foreign users goes, and it is not nobody, where all others could go at one time and were enough.
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
    """Whether these go, and no more than have to; nobody may only where some could not go."""

    def is_enough(those: Collection[Holder]) -> bool:
        return may_go(those, there, quotas) and serves(those)

    if serves(()):
        return not taken
    those = [holder for holder in there if holder.name in taken]
    foreign_too = any(holder.is_foreign for holder in those)
    for standing in range(foreign_too if those else 2):
        if is_enough(willing(there, bool(standing))):
            return False
    alike = willing(there, foreign_too)
    fewer = (s for size in range(1, len(those)) for s in combinations(alike, size))
    return not those or (is_enough(those) and not any(map(is_enough, fewer)))


def willing(there: Collection[Holder], foreign_too: bool) -> list[Holder]:
    return [h for h in there if h.is_foreign <= foreign_too and not h.stays]


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


@settings(max_examples=60, deadline=None)
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
    # Of one queue, the first of them the first to go.
    drawn = [("b", n, False, False, amount) for n, amount in enumerate(has)]
    there, by_slots = with_devices(drawn, new_devices()), with_slots(drawn)
    devices = a_slice_object(*(d.name for holder in there for d in holder.devices))
    shared = a_slice_object(a_device("shared", slots=sum(has)))

    assert taken_of(there, NO_QUOTAS, a_request(count=wants), devices) == {f"h{n}" for n in go}
    assert taken_of(by_slots, NO_QUOTAS, a_request(slots=wants), shared) == {f"h{n}" for n in go}
    assert taken_of_room(there, NO_QUOTAS, wants) == {f"h{n}" for n in go}
