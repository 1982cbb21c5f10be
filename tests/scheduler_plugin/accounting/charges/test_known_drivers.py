"""Devices in the shapes and names that well-known drivers publish, and what entries count of them.

The slices are written anew after the documentation and the sources of these drivers; the numbers
are invented. `dra-driver-nvidia-gpu`, `intel-resource-drivers`, `k8s-gpu-dra-driver` (AMD),
`dranet`, `dra-driver-cpu`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube.cel import processes
from scheduler_plugin.accounting.charges.costs import claim_cost
from scheduler_plugin.cluster.cel_processes import evaluate_all
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.measures import amount_text
from tests.scheduler_plugin.builders import (
    a_claim,
    a_queue,
    a_request,
    a_result,
    a_world,
    their_class,
)


def text(value: str) -> dict[str, Any]:
    return {"string": value}


def amounts(**of: str) -> dict[str, Any]:
    return {name: {"value": value} for name, value in of.items()}


NVIDIA = {
    "name": "gpu-0",
    "attributes": {
        "type": text("gpu"),
        "uuid": text("GPU-4cf8db2d"),
        "productName": text("NVIDIA H100 80GB HBM3"),
        "architecture": text("Hopper"),
        "cudaComputeCapability": {"version": "9.0.0"},
        "resource.kubernetes.io/pciBusID": text("0000:01:00.0"),
    },
    "capacity": amounts(memory="81559Mi"),
    "consumesCounters": [
        {
            "counterSet": "gpu-0-counter-set",
            "counters": {
                **amounts(memory="81559Mi", multiprocessors="132"),
                "memory-slice-0": {"value": "1"},
            },
        }
    ],
}
MIG = {
    "name": "gpu-0-mig-1g10gb-19-0",
    "attributes": {
        "type": text("mig"),
        "profile": text("1g.10gb"),
        "parentUUID": text("GPU-4cf8db2d"),
        "architecture": text("Hopper"),
    },
    "capacity": amounts(memory="9984Mi", multiprocessors="16"),
    "consumesCounters": [
        {
            "counterSet": "gpu-0-counter-set",
            "counters": {
                **amounts(memory="9984Mi", multiprocessors="16"),
                "memory-slice-0": {"value": "1"},
            },
        }
    ],
}
INTEL = {
    "name": "0000-0f-00-0-0x56c0",
    "attributes": {
        "model": text("0x56c0"),
        "family": text("Data Center Flex"),
        "health": text("Healthy"),
    },
    "capacity": {**amounts(memory="14248Mi"), "millicores": {"value": "1k"}},
}
AMD = {
    "name": "gpu-1-129",
    "attributes": {
        "type": text("amdgpu-partition"),
        "partitionProfile": text("cpx_nps4"),
        "productName": text("AMD Instinct MI300X OAM"),
        "driverVersion": {"version": "6.12.12"},
    },
    "capacity": amounts(memory="24Gi", computeUnits="38", simdUnits="152"),
}
DRANET = {
    "name": "net1",
    "attributes": {
        "dra.net/ifName": text("eth1"),
        "dra.net/rdma": {"bool": True},
        "dra.net/mtu": {"int": 8896},
        "dra.net/numaNode": {"int": 0},
        "dra.net/virtual": {"bool": False},
    },
}
CPUS = {
    "name": "cpudevnuma000",
    "allowMultipleAllocations": True,
    "attributes": {"dra.cpu/numaNodeID": {"int": 0}, "dra.cpu/smtEnabled": {"bool": True}},
    "capacity": {
        "dra.cpu/cpu": {
            "value": "64",
            "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}},
        }
    },
}

HOPPER = (
    'device.attributes["gpu.nvidia.com"].type == "gpu"'
    ' && device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
)
LARGE = 'device.capacity["gpu.amd.com"].memory.compareTo(quantity("20Gi")) >= 0'
FAST = 'device.attributes["dra.net"].rdma && device.attributes["dra.net"].mtu > 8000'


def measured(capacity: str = "", counter: str = "", of: str = "*") -> dict[str, Any]:
    return {
        "measure": {"capacity": capacity} if capacity else {"counter": {"set": of, "name": counter}}
    }


@pytest.mark.parametrize(
    ("driver", "device", "entry", "cost"),
    [
        ("gpu.nvidia.com", NVIDIA, measured("memory"), "81559Mi"),
        ("gpu.nvidia.com", NVIDIA, measured(counter="memory", of="gpu-*"), "81559Mi"),
        ("gpu.nvidia.com", MIG, measured(counter="memory", of="gpu-*"), "9984Mi"),
        ("gpu.nvidia.com", MIG, measured(counter="multiprocessors"), "16"),
        ("gpu.nvidia.com", MIG, measured(counter="memory-slice-0"), "1"),
        ("gpu.nvidia.com", NVIDIA, {"selector": HOPPER}, "1"),
        ("gpu.nvidia.com", MIG, {"selector": HOPPER}, None),
        ("gpu.intel.com", INTEL, measured("millicores"), "1k"),
        ("gpu.intel.com", INTEL, measured("gpu.intel.com/memory"), "14248Mi"),
        ("gpu.amd.com", AMD, {"selector": LARGE, **measured("computeUnits")}, "38"),
        ("dra.net", DRANET, {"selector": FAST}, "1"),
        ("dra.cpu", CPUS, measured("cpu"), "4"),
        ("dra.cpu", CPUS, measured("dra.cpu/cpu"), "4"),
        ("dra.cpu", CPUS, measured("memory"), None),
    ],
)
async def test_an_allocated_device_costs_what_its_driver_says(
    driver: str,
    device: dict[str, Any],
    entry: dict[str, Any],
    cost: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)
    queue = a_queue("vision", resources=[{"name": "entry", "driver": driver, **entry}])
    world = a_world(queue, their_class("class", f"device.driver == '{driver}'"))
    spec = {"driver": driver, "pool": {"name": "a"}, "nodeName": "a", "devices": [device]}
    world.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    part: dict[str, Any] = {"shareID": "1", "consumedCapacity": {"dra.cpu/cpu": "4"}}
    result = a_result(
        driver=driver, pool="a", device=device["name"], **(part if device is CPUS else {})
    )
    claim = a_claim(requests=[a_request("class")], results=[result], queue="vision", pods=["a"])
    world.put_claim(claim)

    await evaluate_all(world)

    found = {str(key): amount_text(key, n) for key, n in claim_cost(claim, world.facts.catalog)}
    assert found.get("entry") == cost


def test_a_request_of_a_capacity_with_a_domain_is_rounded_by_its_policy() -> None:
    world = a_world(
        a_queue("vision", resources=[{"name": "cpus", "driver": "dra.cpu", **measured("cpu")}]),
        their_class("class", "device.driver == 'dra.cpu'"),
    )
    spec = {"driver": "dra.cpu", "pool": {"name": "a"}, "nodeName": "a", "devices": [CPUS]}
    world.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    asked: Any = {"capacity": {"requests": {"dra.cpu/cpu": "3500m"}}}

    found = claim_cost(a_claim(requests=[a_request("class", **asked)]), world.facts.catalog)

    assert {str(key): amount_text(key, amount) for key, amount in found} == {"cpus": "4"}
