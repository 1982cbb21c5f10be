"""Vendors' devices, claims for them and queues that measure them, for tests of the checker."""

from __future__ import annotations

import json
from typing import Any

from tests.chaos import made
from tests.chaos.measures import NOTE
from tests.chaos.objects import Object

GPU = "gpu.example.com"
MEMORY: Object = {"name": "gpu-memory", "driver": GPU, "measure": {"capacity": "memory"}}
FANS: Object = {
    "name": "fans",
    "driver": GPU,
    "measure": {"counter": {"set": "box-*", "name": "fans"}},
}
GIB = 2**30


def queue(name: str, *entries: Object, **fields: Any) -> Object:
    return made.queue(name, **{"resources": [*entries], **fields})


def memory(quota: int | str = 0, limit: int | str = -1) -> Object:
    return {**MEMORY, "quota": quota, "limit": limit}


def fans(limit: int = -1) -> Object:
    return {**FANS, "limit": limit}


def device(name: str) -> Object:
    """80Gi that claims may divide, and two fans of its box."""
    counters = {"fans": {"value": "2"}}
    return {
        "name": name,
        "attributes": {"type": {"string": "gpu"}},
        "capacity": {"memory": {"value": "80Gi"}},
        "consumesCounters": [{"counterSet": "box-0", "counters": counters}],
    }


def divided(name: str) -> Object:
    """80Gi by steps of 10Gi, 20Gi unless asked for."""
    policy = {"default": "20Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    memory = {"value": "80Gi", "requestPolicy": policy}
    return {**device(name), "capacity": {"memory": memory}, "allowMultipleAllocations": True}


def published(*names: str, fans: int = 4) -> Object:
    return sliced(*map(device, names), fans=fans)


def sliced(*devices: Object, fans: int = 4) -> Object:
    """In one slice with the counters, which the API server refuses and the checker does not."""
    counters = [{"name": "box-0", "counters": {"fans": {"value": str(fans)}}}]
    pool = {"name": "a", "generation": 1}
    spec = {"driver": GPU, "pool": pool, "nodeName": "a", "devices": [*devices]}
    body = {**spec, "sharedCounters": counters}
    return {"kind": "ResourceSlice", "metadata": {"name": "gpus"}, "spec": body}


def asking(name: str, memory: str = "", count: int = 1, only: str = "") -> Object:
    """A claim without devices that asks for so much of each of some."""
    found = made.claim(name, of_class=GPU)
    (request,) = found["spec"]["devices"]["requests"]
    request["exactly"]["count"] = count
    if memory:
        request["exactly"]["capacity"] = {"requests": {"memory": memory}}
    if only:
        request["exactly"]["selectors"] = [{"cel": {"expression": only}}]
    return found


def claim(
    name: str, owner: str, *users: Object, of: str = "gpu-0", part: str = "", at: str = ""
) -> Object:
    """With users it has a device, or a part of it."""
    found = made.claim(name, owner, *users, of_class=GPU)
    if users:
        result: Object = {"request": "device", "driver": GPU, "pool": "a", "device": of}
        if part:
            result["consumedCapacity"] = {"memory": part}
        allocation = found["status"]["allocation"]
        allocation["devices"]["results"] = [result]
        allocation["allocationTimestamp"] = at
    return found


def noted(claim: Object, of: str = "gpu-0", **amounts: str) -> Object:
    """The claim with a note of what the device costs."""
    metadata = claim["metadata"]
    note = {NOTE: json.dumps({f"{GPU}/a/{of}": amounts})}
    annotations = {**metadata.get("annotations", {}), **note}
    return {**claim, "metadata": {**metadata, "annotations": annotations}}
