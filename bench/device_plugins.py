"""Memory and idle CPU of many device plugins on one node, each with the kubelet's stream.

    python -m bench.device_plugins [--plugins 1000] [--slots 10] [--idle 20]

The kubelet is a fake one in this process. `empty` is a process that imports the same modules and
has an empty grpc.aio server; what `plugins` has more is what the plugins take.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import grpc.aio

from bench.process_figures import cpu_seconds, resident_mib
from driver.api import InstanceName
from driver.device_plugin.containers.responses import ContainerResponse, Refused
from driver.device_plugin.kubelet.device_plugins import DevicePlugins
from driver.device_plugin.slots.allocation import OfInstance, Plugin
from driver.device_plugin.slots.lists import PluginDevice
from tests.fakes.device_manager import FakeDeviceManager

READY_SECONDS = 120.0


class NoAnswers:
    """Nobody asks."""

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        return Refused("nobody asks")

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        return ()


async def serve(folder: Path, plugins: int, slots: int) -> None:
    """Be the process that is measured."""
    if not plugins:
        server = grpc.aio.server()
        server.add_insecure_port(f"unix:{folder / 'empty.sock'}")
        await server.start()
        await server.wait_for_termination()
    served = DevicePlugins(folder, NoAnswers())
    names = [InstanceName(f"camera-{number:06x}") for number in range(plugins)]
    served.offer(
        {
            OfInstance(name): tuple(PluginDevice(f"{name}-{i}", True) for i in range(slots))
            for name in names
        }
    )
    await served.run()


async def measure(arguments: argparse.Namespace) -> None:
    """Start both, wait until all streams have their lists, and look."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        folder = Path(root)
        async with FakeDeviceManager(folder) as kubelet:
            begun = time.monotonic()
            plugins = await child(folder, arguments.plugins, arguments.slots)
            empty = await child(folder, 0, 0)
            try:
                await all_listed(kubelet, arguments.plugins)
                print(f"all registered and listed after {time.monotonic() - begun:.1f} s")
                await report({"plugins": plugins.pid, "empty": empty.pid}, arguments.idle)
            finally:
                for process in (plugins, empty):
                    process.kill()
                    await process.wait()


async def child(folder: Path, plugins: int, slots: int) -> asyncio.subprocess.Process:
    flags = (f"--serve={folder}", f"--plugins={plugins}", f"--slots={slots}")
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.device_plugins", *flags
    )


async def all_listed(kubelet: FakeDeviceManager, plugins: int) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while len(kubelet.capacity) < plugins:
            with suppress(TimeoutError):
                await kubelet.until(lambda: len(kubelet.capacity) == plugins)


async def report(pids: dict[str, int], idle_seconds: float) -> None:
    await asyncio.sleep(2)
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    await asyncio.sleep(idle_seconds)
    for name, pid in pids.items():
        share = (cpu_seconds(pid) - before[name]) / idle_seconds
        print(f"{name:8} RSS {resident_mib(pid):6.1f} MiB   idle {share:6.2%} of a core")


def main() -> None:
    """Measure, or be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.device_plugins", description=__doc__)
    parser.add_argument("--plugins", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=10, help="of each plugin")
    parser.add_argument("--idle", type=float, default=20.0, help="seconds to look at")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve, arguments.plugins, arguments.slots))
    else:
        asyncio.run(measure(arguments))


if __name__ == "__main__":
    main()
