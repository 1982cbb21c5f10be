"""Judge pods where queues count four measures of a vendor's devices, and where they count one.

The devices consume counters of their GPU, and no two look alike to CEL. Both worlds are asked in
turns; the ratio of their medians is printed for Filter (a claim without devices), for Bind (a claim
with one) and for folding a claim into the ledger. Then the time and memory that a plugin needs to
enter 100,000 such devices at its start. Run with `python -m bench.measures`.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from bench.verdicts import NOW, SETTINGS
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import class_view
from scheduler_plugin.objects.names import QUEUE_LABEL
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodView
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.published_slices import published_slice

GPU = "gpu.example.com"
LARGE = f"device.attributes['{GPU}'].model == 'large'"
ONE: list[dict[str, Any]] = [
    {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}, "limit": "1Pi"}
]
FOUR = [
    *ONE,
    {"name": "gpus", "driver": GPU},
    {"name": "large", "driver": GPU, "selector": LARGE},
    {"name": "mig", "driver": GPU, "measure": {"counter": {"set": "gpu-*", "name": "memory"}}},
]
IN_A_SLICE = 64
DEVICES, MOST_DEVICES = 6_400, 100_000
ROUNDS = 2_000


def slice_object(number: int) -> dict[str, Any]:
    """A node's GPU, in partitions."""
    amount = {"memory": {"value": "10Gi"}, "cores": {"value": "14"}}
    counters = [{"counterSet": f"gpu-{number}", "counters": amount}]
    devices = [
        {
            "name": f"part-{part}",
            "attributes": {
                "model": {"string": "large"},
                "uuid": {"string": f"{number}-{part}"},
            },
            "capacity": amount,
            "consumesCounters": counters,
        }
        for part in range(IN_A_SLICE)
    ]
    node = f"node-{number}"
    spec = {"driver": GPU, "pool": {"name": node}, "nodeName": node, "devices": devices}
    return {"metadata": {"name": f"slice-{number}"}, "spec": spec}


def claim(number: int, *, device: bool) -> ClaimView:
    result = {
        "request": "gpu",
        "driver": GPU,
        "pool": f"node-{number // IN_A_SLICE}",
        "device": f"part-{number % IN_A_SLICE}",
    }
    reserved = [{"resource": "pods", "name": f"p{number}", "uid": f"p{number}"}]
    allocated = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
    name = f"c{number}"
    obj = {
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": allocated if device else {},
    }
    return claim_view(obj, queue_label=QUEUE_LABEL)


def pod(number: int) -> PodView:
    name = f"p{number}"
    metadata = {
        "namespace": "default",
        "name": name,
        "uid": name,
        "labels": {QUEUE_LABEL: "leaf"},
    }
    claims = [{"name": "gpu", "resourceClaimName": f"c{number}"}]
    spec = {"schedulerName": "moorage", "resourceClaims": claims}
    return pod_view({"metadata": metadata, "spec": spec}, SETTINGS)


def build(entries: list[dict[str, Any]]) -> World:
    """A leaf below three queues; half of the devices are in use."""
    world = World(SETTINGS)
    world.put_namespace(NamespaceView("default", {}))
    selectors = [{"cel": {"expression": f"device.driver == '{GPU}'"}}]
    world.put_class(class_view({"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}))
    for name, parent in (("root", ""), ("a", "root"), ("b", "a"), ("leaf", "b")):
        spec = {"parent": parent, "namespaceSelector": {}, "resources": entries}
        world.put_queue(parse_queue({"metadata": {"name": name}, "spec": spec}))
    for number in range(DEVICES // IN_A_SLICE):
        world.put_slice(published_slice(slice_object(number)).view)
    return world


def evaluated(world: World) -> None:
    """All selectors say yes."""
    while opened := world.facts.open_looks.by_expressions():
        for expressions, looks in opened.items():
            world.put_selected(expressions, dict.fromkeys(looks, True))


def filtered(world: World, number: int) -> float:
    return _judged(world, pod(number), claim(number, device=False), at_bind=False)


def bound(world: World, number: int) -> float:
    return _judged(world, pod(number), claim(number, device=True), at_bind=True)


def _judged(world: World, found: PodView, its: ClaimView, *, at_bind: bool) -> float:
    world.put_claim(its)
    evaluated(world)
    start = perf_counter()
    verdict = judge(found, world.facts.claims_of(found), world, at_bind=at_bind)
    assert isinstance(verdict, Admitted), verdict
    assume(found, verdict, world, NOW)
    took = perf_counter() - start
    world.assumptions.forget(found.uid)
    world.delete_claim(its.uid)
    return took


def folded(world: World, number: int) -> float:
    its = claim(number, device=True)
    start = perf_counter()
    world.put_claim(its)
    evaluated(world)
    world.delete_claim(its.uid)
    return perf_counter() - start


def compare(what: str, act: Callable[[World, int], float], one: World, four: World) -> None:
    """In pairs, one after the other."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        for world, found in zip((one, four), times, strict=True):
            found.append(act(world, number))
    single, several = (median(each) * 1e6 for each in times)
    print(
        f"{what:>28}: one measure {single:6.1f} us, four {several:6.1f} us,"
        f" ratio {several / single:.2f}"
    )


def start_up() -> None:
    """Slices of 100,000 devices, entered as the plugin does."""
    objects = [slice_object(number) for number in range(-(-MOST_DEVICES // IN_A_SLICE))]
    world, offered = build(FOUR), OfferedDevices()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    for obj in objects:
        found = published_slice(obj)
        offered.put_slice(found)
        world.put_slice(found.view)
    took = perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    print(f"{MOST_DEVICES} devices entered in {took:.1f} s, {grown} MiB more")


def main() -> None:
    one, four = build(ONE), build(FOUR)
    compare("Filter", filtered, one, four)
    compare("Bind", bound, one, four)
    compare("a claim comes and goes", folded, one, four)
    start_up()


if __name__ == "__main__":
    main()
