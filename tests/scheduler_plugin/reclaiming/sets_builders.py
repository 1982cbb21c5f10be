"""Small worlds of claims with several devices or slots, and what is taken in them for a pod."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

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
    a_node_object,
)

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


def new_devices(numas: Iterable[int] = ()) -> Callable[[str], Device]:
    """Makes the next device of a node, of the next NUMA node."""
    numbers, numa = count(), iter(numas)
    return lambda node: Device(f"d{next(numbers)}", node, next(numa, 0))


def with_devices(
    drawn: Any, device: Callable[[str], Device], nodes: Sequence[str] = ()
) -> list[Holder]:
    """What was drawn by `holders`, with so many devices each: on node n if nothing is said."""
    return [
        _holder(n, of, devices=tuple(device(nodes[n] if nodes else "n") for _ in range(has)))
        for n, (*of, has) in enumerate(drawn)
    ]


def with_slots(drawn: Any) -> list[Holder]:
    """What was drawn by `holders`, with so many slots of one device each."""
    return [_holder(n, of, slots=has) for n, (*of, has) in enumerate(drawn)]


def _holder(n: int, of: Any, **has: Any) -> Holder:
    queue, priority, is_foreign, stays = of
    return Holder(f"h{n}", queue, priority, is_foreign, stays, **has)


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
        yield test_room.a_used_pod(holder.name, holder.queue, holder.name, **more)
        if holder.is_foreign:
            yield test_room.a_used_pod(f"f{holder.name}", "others", holder.name, node=node)


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
