"""A handler with as many devices as it may have, and then with many more: the driver's memory.

    python -m bench.flood [--devices N] [--flood N] [--seconds S] [--dir DIR]

A real API server, one driver of a node, and a discovery handler in a process of its own. `there` is
the driver with the devices, when their slices and Instances are written. Then the handler answers
with a flood, ten times a second, each beyond the cap: `flood` is the most that the driver had while
that lasts. The ratio is to `there`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import measured_cluster
from bench.fair_turns import watched
from bench.idle_driver import control_plane, driver_command, process
from bench.process_figures import peak_mib, resident_mib
from driver.handlers.sdk import Device, Handler, Request, run
from driver.handlers.sdk_requests import AGENT_SOCKET
from kube.calls.api import connect
from kube.kinds import CONFIGURATIONS
from tests.fakes.pod_resources import FakePodResources

NAME = "shelf"
BEGIN = signal.SIGUSR1
BETWEEN_SECONDS = 0.1
SETTLE_SECONDS = 5.0


def handle(devices: int, flood: int) -> None:
    """Have the devices; after a signal, flood."""

    async def discover(_: Request) -> AsyncGenerator[list[Device], None]:
        begun = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(BEGIN, begun.set)
        yield described(devices)
        await begun.wait()
        for turn in range(sys.maxsize):
            yield described(flood + turn % 2)  # What equals the last answer is not sent.
            await asyncio.sleep(BETWEEN_SECONDS)

    run(Handler(NAME, discover, shared=False))


def described(devices: int) -> list[Device]:
    return [Device(f"place-{number}", {"SHELF_PLACE": str(number)}) for number in range(devices)]


@contextmanager
def handler(devices: int, flood: int, folder: Path) -> Iterator[Callable[[], None]]:
    """Gives what begins the flood."""
    argv = (sys.executable, "-m", "bench.flood", "--handle")
    counts = (f"--devices={devices}", f"--flood={flood}")
    environment = {**os.environ, "DISCOVERY_HANDLERS_DIRECTORY": str(folder)}
    running = subprocess.Popen((*argv, *counts), env=environment)
    try:
        yield lambda: running.send_signal(BEGIN)
    finally:
        running.terminate()
        running.wait(20)


async def have_all(kubeconfig: Path, devices: int, listings: Path) -> None:
    """Ask for them, and wait for their slices and Instances."""
    async with FakePodResources(listings), connect(kubeconfig) as client, watched(client) as seen:
        body = {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": NAME, "namespace": "default"},
            "spec": {"discoveryHandler": {"name": NAME, "discoveryDetails": ""}},
        }
        since = time.perf_counter()
        await client.create(CONFIGURATIONS, body)
        there = await seen.until(lambda: seen.devices(NAME) == devices, since)
        written = await seen.until(lambda: seen.objects(NAME) == devices, since)
        print(f"{devices} devices: slices {there:.1f} s, Instances {written:.1f} s", flush=True)


def most_mib(pid: int, seconds: float) -> float:
    """The most that a process has from now on; the kernel keeps it."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    time.sleep(seconds)
    return peak_mib(pid)


def measure(arguments: argparse.Namespace) -> tuple[float, float, float]:
    """MiB that the driver has with the devices, had until then, and has in the flood."""
    with ExitStack() as stack:
        cluster, node = stack.enter_context(control_plane(arguments.dir))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-bench-")))
        agent = f"--handler-registration-socket={folder / AGENT_SOCKET}"
        command = (*driver_command(cluster, node, folder), agent)
        driver = stack.enter_context(process(command, arguments.dir.with_suffix(".driver.log")))
        begin = stack.enter_context(handler(arguments.devices, arguments.flood, folder))
        listings = folder / "kubelet" / "pod-resources"
        asyncio.run(have_all(cluster.kubeconfig, arguments.devices, listings))
        time.sleep(SETTLE_SECONDS)
        there, before = resident_mib(driver), peak_mib(driver)
        begin()
        return there, before, most_mib(driver, arguments.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=5000, help="as many as there may be")
    parser.add_argument("--flood", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    parser.add_argument("--handle", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.handle:
        handle(arguments.devices, arguments.flood)
        return
    there, before, flood = measure(arguments)
    print(f"MiB of the driver: there {there:.0f}, until then at most {before:.0f}")
    print(f"in a flood of {arguments.flood} devices at most {flood:.0f}, ratio {flood / there:.2f}")


if __name__ == "__main__":
    main()
