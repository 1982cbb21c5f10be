"""Brokers: how soon a Pod comes and goes with its Instance, and thousands of them.

    python -m bench.brokers [--pairs 40] [--instances 2500] [--dir DIR]

A real API server; nodes and their Instances are objects that nobody keeps, and `moorage-driver
shared` is a process that leads, with the rights of its own account. Nothing else runs: no garbage
collector, so it is the driver that removes the Pods of an Instance, and no kubelet, so they are
gone at once. Measured are

    comes   from the creation of an Instance until its broker Pod is there
    goes    from the deletion of an Instance until its broker Pod is gone

each until a watch on the API server shows it, and each in turns with the least that any controller
must do: write the same objects, the Pod and the template of its claim, one after another, of bodies
that it has in memory. `a Pod` is the creation, or the deletion, of one Pod alone.

Then many Instances of one Configuration: the memory of the driver without brokers, none of which
is made while they are more than there may be, and then with all of them; how fast they come; and
how soon a broker of another Configuration comes and goes meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import measured_cluster
from bench.broker_acts import (
    FEW,
    MANY,
    NAMESPACE,
    NONE,
    Bench,
    Found,
    Seen,
    is_there,
    reason,
    watched,
)
from bench.idle_driver import process
from bench.process_figures import cpu_seconds, resident_mib
from bench.shared_publishing import row, wait_for_leader
from driver.brokers.workloads import MOST_BROKERS
from kube.calls.api import connect
from kube.kinds import CONFIGURATIONS, PODS
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from tests.e2e.driver import brokers, installation

NODES = 10
ASIDE = (0.02, 0.3, 0.6)
"""When brokers of another Configuration are measured: what part of the many is there."""


@dataclass
class Many:
    """Many Instances of one Configuration.

    Attributes:
        pods: Their brokers.
        reasons: What the conditions of all Configurations say of their brokers.
        pid: Of the driver.
    """

    bench: Bench
    pods: Seen[bool]
    reasons: Seen[str]
    pid: int
    count: int

    async def measure(self, found: Found, nodes: list[str]) -> None:
        await self.bench.arrive(self.count, nodes)
        await self.settle()
        found.lines.append(f"{self.count} Instances: driver {resident_mib(self.pid):.0f} MiB")
        found.lines.append(await self.too_many())
        found.lines.append(await self.all(found))
        await self.settle()
        found.lines.append(f"with their brokers: driver {resident_mib(self.pid):.0f} MiB")

    async def settle(self) -> None:
        """Until the driver has nothing left to do."""
        await asyncio.to_thread(measured_cluster.until_idle, self.pid)

    async def too_many(self) -> str:
        """More brokers are wanted than there may be: none is made."""
        before, since = cpu_seconds(self.pid), time.perf_counter()
        await self.bench.want(brokerSpec={"brokerPodSpec": brokers.pod_spec()})
        told = await self.reasons.until(lambda: self.reasons.shows(MANY) == "TooManyBrokers", since)
        await self.settle()
        if made := [*self.pods.store, *await self.bench.templates()]:
            raise SystemExit(f"{len(made)} objects were made beyond the most")
        cpu = cpu_seconds(self.pid) - before
        return f"too many: told after {told:.1f} s, nothing made, CPU of the driver {cpu:.1f} s"

    async def all(self, found: Found) -> str:
        """All brokers are made, and meanwhile some of another Configuration."""
        before, since = cpu_seconds(self.pid), time.perf_counter()
        await self.bench.want(maxBrokers=self.count)
        whole = asyncio.create_task(self._until(1.0, since))
        for share in ASIDE:
            await self._until(share, since)
            await self.bench.broker(found.beside)
        seconds = await whole
        cpu = (cpu_seconds(self.pid) - before) / seconds
        return (
            f"{self.count} Pods made in {seconds:.0f} s, {self.count / seconds:.1f} a second, with"
            f" their templates {2 * self.count / seconds:.1f} objects; CPU of the driver {cpu:.1%}"
        )

    async def _until(self, share: float, since: float) -> float:
        return await self.pods.until(lambda: len(self.pods.store) >= share * self.count, since)


async def measure(
    cluster: Cluster, pid: int, nodes: list[str], arguments: argparse.Namespace
) -> Found:
    found = Found()
    of_many = PODS.select(NAMESPACE, label_selector=f"akri.sh/configuration={MANY}")
    async with (
        connect(cluster.kubeconfig) as client,
        watched(client, PODS.select(NAMESPACE), is_there) as seen,
        watched(client, of_many, is_there) as pods,
        watched(client, CONFIGURATIONS.select(NAMESPACE), reason) as reasons,
    ):
        await wait_for_leader(client)
        bench = Bench(client, seen, nodes[0])
        await bench.configure(NONE)
        await bench.configure(FEW, brokerSpec={"brokerPodSpec": brokers.pod_spec()})
        await bench.pair(Found())  # The first one finds connections cold.
        for _ in range(arguments.pairs):
            await bench.pair(found)
        if arguments.instances:
            many = Many(bench, pods, reasons, pid, arguments.instances)
            await many.measure(found, nodes)
    return found


def report(found: Found, pairs: int) -> None:
    print(f"{pairs} Instances one after the other; milliseconds, least is the same writes")
    print(f"{'':22}{'p50':>8}{'max':>8}{'least':>8}{'ratio':>8}")
    row("a broker comes", found.driver.comes, found.least.comes)
    row("a broker goes", found.driver.goes, found.least.goes)
    print("the same beside a Pod alone")
    row("a broker comes", found.driver.comes, found.pod.comes)
    row("a broker goes", found.driver.goes, found.pod.goes)
    for line in found.lines:
        print(line)
    if found.beside.comes:
        print("meanwhile, of another Configuration")
        row("a broker comes", found.beside.comes)
        row("a broker goes", found.beside.goes)


@contextmanager
def control_plane(work_dir: Path) -> Iterator[tuple[Cluster, list[str]]]:
    """An API server that knows some nodes, which nobody runs, and allows brokers."""
    settings = ClusterSettings(
        work_dir=work_dir, nodes=0, fake_nodes=NODES, parts=CONTROL_PLANE, audit=False
    )
    cluster = Cluster.up(settings)
    try:
        cluster.part("fake-nodes").stop()
        installation.install_objects(cluster)
        brokers.allow_everywhere(cluster)
        brokers.allow(cluster, NAMESPACE)
        # No controller is there that would.
        cluster.kubectl("create", "serviceaccount", "default", f"--namespace={NAMESPACE}")
        names = cluster.kubectl("get", "nodes", "--output=name").stdout.split()
        yield cluster, [name.removeprefix("node/") for name in names]
    finally:
        cluster.down(purge=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--instances", type=int, default=2500, help="0: leave that part out")
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    arguments = parser.parse_args()
    if 0 < arguments.instances <= MOST_BROKERS:
        parser.error(f"--instances: 0, or more than the default of maxBrokers, {MOST_BROKERS}")
    with ExitStack() as stack:
        cluster, nodes = stack.enter_context(control_plane(arguments.dir))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="moorage-bench-")))
        account = cluster.service_account_kubeconfig(
            "driver-shared", namespace=installation.NAMESPACE
        )
        flags = (f"--kubeconfig={account}", "--metrics-address=", "--broker-namespaces=*")
        driver = process(("driver", "shared", *flags), folder / "driver.log")
        pid = stack.enter_context(driver)
        found = asyncio.run(measure(cluster, pid, nodes, arguments))
    report(found, arguments.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
