"""Plugins that give nothing, for resources of which pods have devices from before."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc.aio
import pytest

from driver.device_plugin.kubelet.device_plugins import DevicePlugins
from driver.device_plugin.kubelet.empty_plugins import NothingToGive, plugins_in_use
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance
from tests.driver.slot_builders import (
    CAMERA_1,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    RESOURCE,
    by_configuration,
    some_slots,
)
from tests.fakes.device_manager import FakeDeviceManager

CAMERAS = OfConfiguration(CONFIGURATION, unique_devices=True)


@pytest.fixture
def root() -> Iterator[Path]:
    """A kubelet's folder; paths of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        root = Path(folder)
        (root / "device-plugins").mkdir()
        yield root


async def test_the_kubelet_knows_the_resource_and_gets_nothing_of_it(root: Path) -> None:
    plugins = DevicePlugins(root / "device-plugins", NothingToGive())
    plugins.offer({CAMERAS: ()})
    running = asyncio.create_task(plugins.run())

    async with FakeDeviceManager(root / "device-plugins") as kubelet:
        await kubelet.until_listed(RESOURCE)
        with pytest.raises(grpc.aio.AioRpcError, match="Dynamic Resource Allocation") as refused:
            await kubelet.allocate(RESOURCE, [CAMERA_1])

    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def test_those_of_resources_that_pods_of_the_node_have_are_needed() -> None:
    usage = {
        f"{CAMERA_1}-0": by_configuration(CAMERA_1, NODE_A),
        f"{CAMERA_1}-1": NODE_B,
    }

    assert plugins_in_use([some_slots(usage=usage)], NODE_A) == {CAMERAS}
    assert plugins_in_use([some_slots(usage=usage)], NODE_B) == {OfInstance(CAMERA_1)}
    assert plugins_in_use([some_slots()], NODE_A) == frozenset()
