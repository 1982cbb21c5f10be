"""Drivers of vendors: partitions by counters, and devices that claims divide by a capacity.

Moorage takes no part. These stories show that the driver of `tests.e2e.vendor_devices` is one as
vendors ship them: kube-scheduler allocates its devices, and the kubelet prepares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from local_cluster.api import Cluster, PartError
from tests.e2e import vendor_devices
from tests.e2e.vendor_devices import VendorDriver
from tests.e2e.vendor_hardware import (
    GPUS,
    NICS,
    Slice,
    amounts,
    divisible_gpus,
    divisible_nics,
    partitionable_gpus,
)
from tests.e2e.vendor_stories import Got, Story, one

NODE = "node-a"
OF_GPUS = f'device.attributes["{GPUS}"]'
WHOLE = f'{OF_GPUS}.type == "gpu" && !device.allowMultipleAllocations'
DIVISIBLE = "device.allowMultipleAllocations"

GPU = f"{GPUS}/{NODE}/gpu-1"
NIC = f"{NICS}/{NODE}/nic-0"

BOX = [*partitionable_gpus("gpu-0"), *divisible_gpus("gpu-1")]
"""What the node has of one vendor: a GPU of either kind."""


@pytest.fixture(scope="module")
def gpus(cluster: Cluster) -> Iterator[VendorDriver]:
    with vendor_devices.running(cluster, GPUS, BOX, NODE) as driver:
        yield driver


@pytest.fixture(scope="module")
def nics(cluster: Cluster) -> Iterator[VendorDriver]:
    with vendor_devices.running(cluster, NICS, divisible_nics("nic-0"), NODE) as driver:
        yield driver


@pytest.fixture
def story(cluster: Cluster, namespace: str) -> Story:
    return Story(cluster, namespace)


def partition(profile: str) -> dict[str, Any]:
    only = f'{OF_GPUS}.type == "partition" && {OF_GPUS}.profile == "{profile}"'
    return one("gpu", GPUS, only)


def test_slices_are_stored_as_the_profile_gives_them(
    gpus: VendorDriver, nics: VendorDriver
) -> None:
    assert gpus.published() == BOX
    assert nics.published() == divisible_nics("nic-0")
    for driver, count in ((gpus, len(BOX)), (nics, 1)):
        pools = [one["spec"]["pool"] for one in driver.slices()]
        assert {pool["resourceSliceCount"] for pool in pools} == {count} == {len(pools)}
        assert len({(pool["name"], pool["generation"]) for pool in pools}) == 1


def test_a_container_is_told_the_partition_that_its_claim_got_until_its_pod_is_gone(
    story: Story, cluster: Cluster, gpus: VendorDriver
) -> None:
    story.run("small", partition("1g.10gb"))

    (got,) = story.runs("small")

    (result,) = story.results("small")
    assert got == Got(f"{GPUS}/{NODE}/{result['device']}")
    assert result["device"].startswith("gpu-0-1g-10gb-")
    assert gpus.cdi_files(story.uid("small"))
    uid = story.end("small")
    cluster.wait_until("the claim is unprepared", lambda: not gpus.cdi_files(uid))


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("first", ["whole", "part"])
def test_a_gpu_and_a_partition_of_it_are_never_used_at_one_time(story: Story, first: str) -> None:
    wanted = {"whole": one("gpu", GPUS, WHOLE), "part": partition("3g.40gb")}
    second = next(name for name in wanted if name != first)
    story.run(first, wanted[first])
    story.runs(first)
    story.run(second, wanted[second])
    story.waits(second)

    story.end(first)

    assert len(story.runs(second)) == 1


@pytest.mark.usefixtures("gpus")
def test_partitions_of_several_kinds_are_made_while_memory_and_multiprocessors_last(
    story: Story,
) -> None:
    story.run("half", partition("3g.40gb"))
    story.runs("half")
    for number in range(4):
        story.run(f"small-{number}", partition("1g.10gb"))
        story.runs(f"small-{number}")
    story.run("last", partition("1g.10gb"))

    story.waits("last")


@pytest.mark.usefixtures("gpus")
def test_claims_divide_a_gpu_by_memory_as_its_request_policy_rounds(story: Story) -> None:
    consumed = {
        name: amounts({"memory": much})
        for name, much in {"rounded": "10Gi", "by-default": "20Gi", "late": "55Gi"}.items()
    }
    story.run("rounded", one("gpu", GPUS, DIVISIBLE, memory="7Gi"))
    story.run("by-default", one("gpu", GPUS, DIVISIBLE))

    for name in ("rounded", "by-default"):
        assert story.runs(name) == [Got(GPU, consumed[name])]
        (result,) = story.results(name)
        assert amounts(result["consumedCapacity"]) == consumed[name]

    story.run("late", one("gpu", GPUS, DIVISIBLE, memory="51Gi"))
    story.waits("late")
    story.end("rounded")
    assert story.runs("late") == [Got(GPU, consumed["late"])]


@pytest.mark.usefixtures("gpus", "nics")
def test_one_claim_has_a_partition_of_one_vendor_and_bandwidth_of_another(story: Story) -> None:
    link = one("link", NICS, bandwidth="1500M")
    story.run("both", partition("3g.40gb"), link)
    story.run("link", one("link", NICS, bandwidth="98G"))

    assert story.runs("both") == [
        Got(f"{GPUS}/{NODE}/gpu-0-3g-40gb-0"),
        Got(NIC, amounts({"bandwidth": "2G"})),
    ]
    assert story.runs("link") == [Got(NIC, amounts({"bandwidth": "98G"}))]
    story.run("more", one("link", NICS, bandwidth="1G"))
    story.waits("more")


def test_a_claim_stays_allocated_while_its_device_leaves_the_slices(
    story: Story, cluster: Cluster
) -> None:
    """Another process than the one that prepared the claim unprepares it."""
    with vendor_devices.running(cluster, "left.example.com", partitionable_gpus("gpu-0")) as driver:
        story.run("stays", one("gpu", driver.name))
        (got,) = story.runs("stays")

        driver.replace_hardware(divisible_gpus("gpu-1"))

        (result,) = story.results("stays")
        assert got == Got(f"{driver.name}/{NODE}/{result['device']}")
        assert driver.cdi_files(story.uid("stays"))
        uid = story.end("stays")
        cluster.wait_until("the claim is unprepared", lambda: not driver.cdi_files(uid))


COUNTERS, DEVICES = partitionable_gpus("gpu-0")


def grouped() -> Slice:
    """Devices with a field that takes a feature which is off by default."""
    device = deepcopy(DEVICES["devices"][0])
    device["consumesCounters"][0]["compatibilityGroups"] = ["whole"]
    return {"devices": [device]}


@pytest.mark.parametrize(
    ("kind", "slices", "why"),
    [
        ("refused", [{**COUNTERS, **DEVICES}], "only one of `sharedCounters` or `devices`"),
        ("shortened", [COUNTERS, grouped()], "fields were dropped.*DRADeviceCompatibilityGroups"),
    ],
)
def test_a_driver_whose_slices_the_api_server_does_not_take_ends_and_says_why(
    cluster: Cluster, kind: str, slices: list[Slice], why: str
) -> None:
    with (
        pytest.raises(PartError, match=why),
        vendor_devices.running(cluster, f"{kind}.example.com", slices),
    ):
        pass
