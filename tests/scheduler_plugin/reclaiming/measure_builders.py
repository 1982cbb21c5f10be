"""Worlds with devices of a vendor that claims divide, and queues that count their memory."""

from __future__ import annotations

from typing import Any

from kube.shapes.quantities import PER_UNIT
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import Queue
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    put,
    their_class,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod

GPU = "gpu.example.com"
GIB = PER_UNIT * 2**30


def memory(quota: str | int = 0, limit: str | int = -1) -> dict[str, Any]:
    measured = {"name": "gpu-memory", "driver": GPU, "measure": {"capacity": "memory"}}
    return {**measured, "quota": quota, "limit": limit}


def h200(quota: int = 0, limit: int = -1) -> dict[str, Any]:
    return {"name": "h200", "driver": GPU, "quota": quota, "limit": limit}


def gpus(quota: int = 0, limit: int = -1) -> dict[str, Any]:
    return {"deviceClass": "gpu", "quota": quota, "limit": limit}


def root(*entries: Any) -> Queue:
    return a_queue("root", resources=list(entries))


def below(name: str, *entries: Any, parent: str = "root") -> Queue:
    return a_queue(name, parent=parent, resources=list(entries))


def a_gpu(name: str) -> dict[str, Any]:
    """A device of 80Gi that claims divide."""
    capacity = {"memory": {"value": "80Gi"}}
    return {"name": name, "capacity": capacity, "allowMultipleAllocations": True}


GPUS = {
    "driver": GPU,
    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
    "nodeName": "n",
    "devices": [a_gpu("g0"), a_gpu("g1")],
}

TEAMS = [root(memory("80Gi", "80Gi")), below("a", memory()), below("b", memory("40Gi"))]
"""Team a has no quota, team b has one of 40Gi."""


def a_gpu_world(*objects: Any) -> World:
    """These devices beside queues and pods; each object may be a list of them."""
    flat = [each for found in objects for each in (found if isinstance(found, list) else [found])]
    world = a_world(their_class("gpu", f"device.driver == '{GPU}'"))
    world.put_slice(slice_view({"metadata": {"name": "gpus"}, "spec": GPUS}))
    put(world, *flat)
    return world


def use(queue: str, name: str, consumed: str, on: str = "g0", **pod: Any) -> list[Any]:
    """A running pod with a part of a device."""
    return [used_part(queue, name, consumed, on), a_used_pod(name, queue, name, **pod)]


def used_part(queue: str, name: str, consumed: str, on: str = "g0") -> ClaimView:
    """The claim of a running pod of this name."""
    part: dict[str, Any] = {"consumedCapacity": {"memory": consumed}, "shareID": f"share-of-{name}"}
    results, requests = [a_result(driver=GPU, pool="n", device=on, **part)], [a_request("gpu")]
    return an_allocated_claim(name, name, queue=queue, results=results, requests=requests)


def waits(queue: str, asked: str, name: str = "w", **pod: Any) -> list[Any]:
    """A pod that waits for a part of a device."""
    claim = a_claim(name, requests=[part_of(asked)])
    return [claim, a_pod(name, queue=queue, claims=[name], **pod)]


def part_of(asked: str) -> dict[str, Any]:
    """A request for a part of a device."""
    return a_request("gpu", capacity={"requests": {"memory": asked}})
