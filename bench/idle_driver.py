"""A node's driver when nothing happens: its memory, its CPU, and how often it wakes up.

    python -m bench.idle_driver [--devices 100] [--seconds 60] [--handlers udev,onvif,opcua]

A real API server and no kubelet. The driver has found the devices, loop devices through udev, and
has written their Instances and ResourceSlices; the network handlers beside it, each in a process of
its own, look every ten seconds, opcua at a server, onvif into the network. A do-nothing driver that
only listens runs in the same seconds: the ratio is to it. `imports` is a process that imports the
driver and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import measured_cluster
from bench.process_figures import cpu_seconds, peak_mib, resident_mib
from kube.calls.api import connect
from kube.kinds import INSTANCES, SLICES
from kube.objects import JsonObject
from local_cluster import loop_devices
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from tests.driver.discovery.opcua import machines

FIRST = 200_000
PRESS = 9
SETTLE_SECONDS = 15.0
"""More than the interval of rediscovery, so that every handler has looked twice."""

DEADLINE_SECONDS = 120.0
DETAILS: Mapping[str, object] = {
    "udev": {"udevRules": ['KERNEL=="loop20*"']},
    "onvif": {},
    "opcua": {
        "opcuaDiscoveryMethod": {
            "standard": {"discoveryUrls": [f"opc.tcp://127.0.0.1:{machines.LDS_PORT}/"]}
        }
    },
}
IMPORTS = (
    "import driver.running.settings, driver.running.node.node_main, driver.discovery.udev.handler"
)
RESIDENT = "; print(int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20)"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one process over some seconds."""

    resident: float
    peak: float
    cpu_percent: float
    wakes: float

    def __str__(self) -> str:
        values = (self.resident, self.peak, self.cpu_percent, self.wakes)
        return "".join(f"{value:12.2f}" for value in values)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process has spent so far."""

    at: float
    cpu: float
    wakes: int

    @classmethod
    def of(cls, pid: int) -> Reading:
        return cls(time.monotonic(), cpu_seconds(pid), wakes(pid))


def wakes(pid: int) -> int:
    """How often the threads of a process have gone to sleep so far, and so were woken."""
    statuses = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in statuses)


def measured(pids: Sequence[int], seconds: float) -> list[Figures]:
    """Of all in the same seconds."""
    before = [Reading.of(pid) for pid in pids]
    time.sleep(seconds)
    return [figures(pid, start) for pid, start in zip(pids, before, strict=True)]


def figures(pid: int, before: Reading) -> Figures:
    now = Reading.of(pid)
    seconds = now.at - before.at
    return Figures(
        resident_mib(pid),
        peak_mib(pid),
        (now.cpu - before.cpu) / seconds * 100,
        (now.wakes - before.wakes) / seconds,
    )


def configuration(handler: str) -> JsonObject:
    metadata = {"name": handler, "namespace": "default"}
    details = json.dumps(DETAILS[handler])
    spec = {"discoveryHandler": {"name": handler, "discoveryDetails": details}}
    body = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": metadata}
    return {**body, "spec": spec}


async def published(cluster: Cluster, devices: int) -> None:
    """Wait until the API server has as many Instances and devices."""
    async with connect(cluster.kubeconfig) as client, asyncio.timeout(DEADLINE_SECONDS):
        while True:
            instances = (await client.list(INSTANCES.select())).items
            slices = (await client.list(SLICES.select())).items
            shown = sum(len(one["spec"].get("devices") or ()) for one in slices)
            if min(len(instances), shown) >= devices:
                return
            await asyncio.sleep(0.5)


def environment() -> dict[str, str]:
    """As in the pod: memory is not kept apart for threads, and modules are compiled beforehand."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "MALLOC_ARENA_MAX": "1"}


@contextmanager
def process(argv: Sequence[str], log: Path) -> Iterator[int]:
    command = (sys.executable, "-m", "bench.as_pod", *argv)
    with log.open("w") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
    try:
        yield running.pid
    finally:
        running.terminate()
        running.wait(20)


def driver_command(
    cluster: Cluster, node: str, folder: Path, embedded: str = "udev"
) -> tuple[str, ...]:
    kubelet, cdi = folder / "kubelet", folder / "cdi"
    (kubelet / "plugins_registry").mkdir(parents=True)
    places = (f"--kubelet-root={kubelet}", f"--cdi-root={cdi}")
    agent = f"--handler-registration-socket={folder / 'agent.sock'}"
    where = (f"--kubeconfig={cluster.kubeconfig}", f"--node-name={node}")
    return ("driver", "node", *where, *places, agent, f"--embedded-handlers={embedded}")


@contextmanager
def plugged(devices: int) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(FIRST, FIRST + devices):
            stack.enter_context(loop_devices.plugged(number))
        yield


@contextmanager
def press() -> Iterator[None]:
    """An OPC UA server that another project wrote, and a Discovery Server that knows it."""
    server = machines.start(0, PRESS)
    try:
        yield
    finally:
        server.kill()
        server.communicate()


@contextmanager
def control_plane(work_dir: Path) -> Iterator[tuple[Cluster, str]]:
    """An API server that knows one node, which nobody runs."""
    settings = ClusterSettings(
        work_dir=work_dir, nodes=0, fake_nodes=1, parts=CONTROL_PLANE, audit=False
    )
    cluster = Cluster.up(settings)
    try:
        cluster.part("fake-nodes").stop()
        measured_cluster.install(cluster)
        yield cluster, cluster.kubectl("get", "nodes", "--output=name").stdout.strip()[5:]
    finally:
        cluster.down(purge=True)


def imported_mib() -> float:
    """The second time, since the first one may compile."""
    command = (sys.executable, "-c", IMPORTS + RESIDENT)
    printed = [
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment()).stdout
        for _ in range(2)
    ]
    return float(printed[-1])


def measure(arguments: argparse.Namespace) -> dict[str, Figures]:
    """Of the driver, of the handlers beside it, and of the driver that does nothing."""
    handlers = arguments.handlers.split(",")
    with ExitStack() as stack:
        cluster, node = stack.enter_context(control_plane(arguments.dir))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-bench-")))
        stack.enter_context(plugged(arguments.devices))
        if "opcua" in handlers:
            stack.enter_context(press())
        cluster.apply([configuration(handler) for handler in handlers])
        command = driver_command(cluster, node, folder)
        driver = stack.enter_context(process(command, folder / "driver.log"))
        asyncio.run(published(cluster, arguments.devices))
        least = ("bench.do_nothing_driver", str(cluster.kubeconfig), str(folder / "least.sock"))
        pids = {"driver": driver}
        for name in handlers:
            if name != "udev":
                beside = ("driver", "handler", name, f"--folder={folder}")
                pids[name] = stack.enter_context(process(beside, folder / f"{name}.log"))
        pids["do-nothing"] = stack.enter_context(process(least, folder / "least.log"))
        time.sleep(SETTLE_SECONDS)
        found = measured(list(pids.values()), arguments.seconds)
        return dict(zip(pids, found, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--handlers", default="udev,onvif,opcua", help="of these three")
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    arguments = parser.parse_args()
    imports = imported_mib()
    found = measure(arguments)
    what = f"{arguments.devices} devices, handlers {arguments.handlers}"
    print(f"{what}, {arguments.seconds:.0f} seconds in which nothing happens")
    print(f"{'':14}{'RSS MiB':>12}{'peak MiB':>12}{'CPU %':>12}{'wakes/s':>12}")
    for name, figures in found.items():
        print(f"{name:14}{figures}")
    ratio = found["driver"].resident / found["do-nothing"].resident
    print(f"{'ratio of RSS':14}{ratio:12.2f}")
    print(f"imports of the driver with udev alone: {imports:.1f} MiB")


if __name__ == "__main__":
    main()
