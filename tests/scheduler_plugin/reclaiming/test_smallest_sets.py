"""No more go than have to: beside what is chosen, all sets of a small world are tried.

The checker knows the rules as the documentation says them, and asks the product nothing: whoever is
chosen may go and is enough, and of the same standing no smaller set is. Nobody with foreign users
goes, and it is not nobody, where all others could go at one time and were enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.pods import PodView
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice,
    a_world,
    an_allocated_claim,
    put,
)
from tests.scheduler_plugin.reclaiming import test_room
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
)
from tests.scheduler_plugin.reclaiming.test_room import a_used_pod

LENDERS = ("b", "c")
NODES = ("n", "m")


@dataclass(frozen=True)
class Device:
    """Of a node, with what some ask to agree about."""

    name: str
    node: str
    numa: int


@dataclass(frozen=True)
class Holder:
    """A claim with one user of its owner's, and maybe a foreign one."""

    name: str
    queue: str
    priority: int
    is_foreign: bool
    stays: bool
    devices: tuple[Device, ...] = ()
    slots: int = 0

    @property
    def cost(self) -> int:
        return len(self.devices) or self.slots


def holders(of: Any) -> Any:
    """Some, whose `of` (how much each has) is drawn."""
    one = st.tuples(
        st.sampled_from(LENDERS),
        st.integers(0, 2),
        st.sampled_from([False, False, True]),
        st.sampled_from([False, False, False, True]),
        of,
    )
    return st.lists(one, min_size=1, max_size=6)


QUOTAS = st.fixed_dictionaries({queue: st.integers(0, 2) for queue in LENDERS})


def may_go(those: Collection[Holder], all_of_them: Collection[Holder], quotas: Any) -> bool:
    if any(holder.stays for holder in those):
        return False
    for queue in {holder.queue for holder in those}:
        left = sum(h.cost for h in all_of_them if h.queue == queue and h not in those)
        if left < quotas[queue]:
            return False
    return True


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


def objects(there: Collection[Holder]) -> Iterator[ClaimView | PodView]:
    for holder in there:
        devices: list[dict[str, Any]]
        devices = [{"pool": d.node, "device": d.name} for d in holder.devices]
        if holder.slots:
            devices = [{"pool": "n", "device": "shared", "slots": holder.slots}]
        results = [a_result(f"q{n}", **device) for n, device in enumerate(devices)]
        slots = holder.slots or None
        requests = [a_request(name=f"q{n}", slots=slots) for n in range(len(devices))]
        users = [holder.name, *([f"f{holder.name}"] if holder.is_foreign else [])]
        of = {"queue": holder.queue, "results": results, "requests": requests}
        yield an_allocated_claim(holder.name, *users, **of)
        node = holder.devices[0].node if holder.devices else "n"
        more = {"priority": holder.priority, "non_preemptible": holder.stays, "node": node}
        yield a_used_pod(holder.name, holder.queue, holder.name, **more)
        if holder.is_foreign:
            yield a_used_pod(f"f{holder.name}", "others", holder.name, node=node)


def taken_of(
    there: Collection[Holder], quotas: Any, request: Any, *slices: Any, match: bool = False
) -> set[str]:
    """The claims of whoever goes for a pod with this request."""
    queues = [a_queue(name, onvif=(quotas[name], -1)) for name in LENDERS]
    queues += [a_queue("mine", onvif=(50, -1)), a_queue("others")]
    pod = a_pod("w", queue="mine", claims=["w"], status=UNSCHEDULABLE)
    world = a_world(*queues, *objects(there), a_claim("w", requests=[request]), pod)
    cluster = Cluster(world, *slices)
    for found in slices:
        spec = found["spec"]
        names = [("onvif", device["name"]) for device in spec["devices"]]
        put(world, a_slice(spec["nodeName"], *names, nodeName=spec["nodeName"]))
    cluster.nodes = {name: a_node_object(name, allocatable={"pods": "99"}) for name in NODES}
    cluster.requests = {"w": [request]}
    cluster.constraints = [{"matchAttribute": "moorage.dev/numa"}] if match else []
    return {name for name in cluster.taken() if not name.startswith("f")}


def taken_of_room(there: Collection[Holder], quotas: Any, wants: int) -> set[str]:
    """The claims of whoever goes for a pod that wants so much below a limit that is reached."""
    used = sum(holder.cost for holder in there)
    queues = [a_queue(name, parent="root", onvif=(quotas[name], -1)) for name in LENDERS]
    queues += [a_queue("mine", parent="root", onvif=(50, -1)), a_queue("others")]
    waiting = test_room.waiting(cost=wants)
    world = a_world(a_queue("root", onvif=(used, used)), *queues, *objects(there), *waiting)
    return {name for name in test_room.taken(world) if not name.startswith("f")}


@settings(max_examples=100, deadline=None)
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
    numbers, numa = count(), iter(numas)
    match = match and wants != "All"

    def device(node: str) -> Device:
        return Device(f"d{next(numbers)}", node, next(numa, 0))

    there = [
        Holder(
            f"h{n}",
            of[0],
            of[1],
            of[2],
            of[3],
            devices=tuple(device(nodes[n]) for _ in range(amount)),
        )
        for n, (*of, amount) in enumerate(drawn)
    ]
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

    assert is_right(taken, there, quotas, serves)


@settings(max_examples=60, deadline=None)
@given(
    drawn=holders(st.integers(1, 3)), free=st.integers(0, 2), wants=st.integers(1, 6), quotas=QUOTAS
)
def test_of_slots(drawn: Any, free: int, wants: int, quotas: Any) -> None:
    there = [
        Holder(f"h{n}", of[0], of[1], of[2], of[3], slots=amount)
        for n, (*of, amount) in enumerate(drawn)
    ]
    capacity = free + sum(holder.slots for holder in there)
    shared = a_slice_object(a_device("shared", slots=capacity))

    def serves(gone: Collection[Holder]) -> bool:
        return free + sum(holder.slots for holder in gone) >= wants

    taken = taken_of(there, quotas, a_request(slots=wants), shared)

    assert is_right(taken, there, quotas, serves)


@settings(max_examples=60, deadline=None)
@given(drawn=holders(st.integers(1, 3)), wants=st.integers(1, 6), quotas=QUOTAS)
def test_of_room(drawn: Any, wants: int, quotas: Any) -> None:
    numbers = count()
    there = [
        Holder(
            f"h{n}",
            of[0],
            of[1],
            of[2],
            of[3],
            devices=tuple(Device(f"d{next(numbers)}", "n", 0) for _ in range(has)),
        )
        for n, (*of, has) in enumerate(drawn)
    ]

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


def in_order(has: Collection[int], *, slots: bool = False) -> list[Holder]:
    """Of one queue, the first of them the first to go."""
    numbers = count()
    return [
        Holder(f"h{n}", "b", n, is_foreign=False, stays=False, slots=amount)
        if slots
        else Holder(
            f"h{n}",
            "b",
            n,
            is_foreign=False,
            stays=False,
            devices=tuple(Device(f"d{next(numbers)}", "n", 0) for _ in range(amount)),
        )
        for n, amount in enumerate(has)
    ]


@pytest.mark.parametrize(("has", "wants", "go"), FEW)
def test_fewer_go_where_fewer_are_enough(has: tuple[int, ...], wants: int, go: list[int]) -> None:
    there, by_slots = in_order(has), in_order(has, slots=True)
    devices = a_slice_object(*(d.name for holder in there for d in holder.devices))
    shared = a_slice_object(a_device("shared", slots=sum(has)))

    assert taken_of(there, NO_QUOTAS, a_request(count=wants), devices) == {f"h{n}" for n in go}
    assert taken_of(by_slots, NO_QUOTAS, a_request(slots=wants), shared) == {f"h{n}" for n in go}
    assert taken_of_room(there, NO_QUOTAS, wants) == {f"h{n}" for n in go}
