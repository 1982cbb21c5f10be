"""From the leader's death to the next pod: two replicas with the plugin, and two without it.

    PYTHONPATH=deploy/local python -m bench.failover [--rounds N] [--lease 15s 10s 2s]

Real etcd, kube-apiserver, controllers and kube-schedulers, a replica on each of two nodes. `bare`
is a pair of kube-schedulers without any extender, with the same times of the Lease. In each round
the leader of each pair is killed (SIGKILL, the plugin too), and at that moment a pod with a claim
is created; the time runs until it has a node. The dead replica is started again for the next
round. The times of the Lease are those of `moorage-scheduler-plugin print-config`, unless they are
given.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from local_cluster.component_handles import ComponentProcess
from tests.e2e.failover import installation
from tests.e2e.failover.installation import PLACES, Place
from tests.e2e.sharing import objects
from tests.e2e.sharing.installation import install_objects
from tests.e2e.sharing.views import KINDS

ROOT = Path(__file__).resolve().parents[1]
WORK_DIR = ROOT / ".cluster-bench-failover"
NAMESPACE = "bench-failover"
CLASS = "bench-device"
DRIVER = f"{CLASS}.example"
QUEUE = "bench"
BARE, PLUGIN = "bare", "plugin"
PEERS = (BARE, PLUGIN)
# client-go's own, where a configuration says nothing.
DEFAULT_TIMES = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
MOST_SECONDS = 90.0
REST_SECONDS = 3.0


@dataclass(frozen=True)
class Pair:
    """Two replicas of one peer; by node, what runs there."""

    cluster: Cluster
    peer: str
    processes: Mapping[str, Sequence[ComponentProcess]]

    @property
    def scheduler_name(self) -> str:
        return f"bench-{self.peer}"

    @property
    def lease(self) -> str:
        return f"bench-{self.peer}"

    def leader(self) -> str:
        """The node whose kube-scheduler holds the Lease, "" for none."""
        lease = self.cluster.get("lease", self.lease, namespace=installation.NAMESPACE) or {}
        holder = str(lease.get("spec", {}).get("holderIdentity", ""))
        return holder.partition("_")[0]

    def start(self, place: Place, times: Mapping[str, str]) -> Sequence[ComponentProcess]:
        asked = [installation.extender(place.plugin_url, "10s")] if self.peer == PLUGIN else []
        configured = installation.configuration(
            asked, scheduler=self.scheduler_name, lease=self.lease, times=times
        )
        name = f"bench-kube-scheduler-{self.peer}"
        scheduler = installation.kube_scheduler(self.cluster, place, configured, name)
        if self.peer == BARE:
            return (scheduler,)
        names = (self.lease, self.scheduler_name)
        return (scheduler, installation.plugin(self.cluster, place, *names))

    def wait_ready(self) -> None:
        """Until one leads, both run, and the leader's plugin serves."""
        for process in self._all():
            process.start()
        self.cluster.wait_until("one leads", self._is_served, seconds=MOST_SECONDS)

    def _is_served(self) -> bool:
        leader = self.leader()
        if leader not in self.processes:
            return False
        answers = {place.node: self._answer(place) for place in PLACES}
        return self.peer == BARE or (all(answers.values()) and answers[leader] == "ok")

    def _answer(self, place: Place) -> str:
        ask = ("curl", "--silent", "--max-time", "2", f"{place.pages_url}/readyz")
        return self.cluster.node(place.node).exec(ask, check=False).stdout

    def kill_leader(self) -> None:
        for process in self.processes[self.leader()]:
            process.signal(signal.SIGKILL)

    def stop(self) -> None:
        for process in self._all():
            process.stop()

    def _all(self) -> Iterator[ComponentProcess]:
        for found in self.processes.values():
            yield from found


@contextmanager
def cluster() -> Iterator[Cluster]:
    """No scheduler of its own. Its two nodes run nothing but the replicas."""
    parts = (*CONTROL_PLANE, "kube-controller-manager")
    settings = ClusterSettings(work_dir=WORK_DIR, nodes=2, fake_nodes=1, parts=parts, audit=False)
    found = Cluster.up(settings)
    try:
        furnish(found)
        yield found
    finally:
        found.down(purge=True)


def furnish(cluster: Cluster) -> None:
    install_objects(cluster)
    # Each pair has a Lease of its own, which the manifests' roles do not name.
    for account in ("scheduler", "scheduler-plugin"):
        subject = f"--serviceaccount={installation.NAMESPACE}:{account}"
        options = ("--clusterrole=cluster-admin", subject)
        cluster.kubectl("create", "clusterrolebinding", f"bench-{account}", *options)
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.apply(
        [
            objects.queue(QUEUE, shares={CLASS: {}}),
            objects.device_class(CLASS, DRIVER),
            objects.resource_slice(DRIVER, "fake-0000", 64),
        ]
    )


@contextmanager
def pairs(cluster: Cluster, peers: Sequence[str], times: Mapping[str, str]) -> Iterator[list[Pair]]:
    started: list[Pair] = []
    try:
        for peer in peers:
            empty = Pair(cluster, peer, {})
            running = {place.node: empty.start(place, times) for place in PLACES}
            started.append(Pair(cluster, peer, running))
        yield started
    finally:
        for pair in started:
            pair.stop()


def gap(pair: Pair) -> float:
    """Seconds from the leader's death to the binding of a pod that was created then."""
    pair.wait_ready()
    # Some renewals and looks at the Lease, as it is in daily life.
    time.sleep(REST_SECONDS + secrets.randbelow(2000) / 1000)
    name = f"{pair.peer}-{secrets.token_hex(3)}"
    claim = objects.claim(name, CLASS)
    labels = {objects.QUEUE: QUEUE} if pair.peer == PLUGIN else {}
    pod = objects.pod(name, [name], labels=labels, schedulerName=pair.scheduler_name)
    with pair.cluster.api() as api:
        api.create(KINDS["claim"].format(NAMESPACE), claim)
        pair.kill_leader()
        began = time.perf_counter()
        api.create(KINDS["pod"].format(NAMESPACE), pod)
        path = f"{KINDS['pod'].format(NAMESPACE)}/{name}"
        wait_for(lambda: bool(api.get(path)["spec"].get("nodeName")))
        seconds = time.perf_counter() - began
        api.delete(f"{path}?gracePeriodSeconds=0")
    return seconds


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody bound the pod")
        time.sleep(0.01)


def printed_times() -> dict[str, str]:
    """Of the Lease, as our configuration has them."""
    command = (sys.executable, "-m", "scheduler_plugin", "print-config")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    election = yaml.safe_load(done.stdout)["leaderElection"]
    return {key: election.get(key, default) for key, default in DEFAULT_TIMES.items()}


def report(found: Mapping[str, list[float]], times: Mapping[str, str]) -> None:
    duration = float(times["leaseDuration"].removesuffix("s"))
    said = " ".join(f"{key}={value}" for key, value in times.items())
    print(f"Lease: {said}; load average {os.getloadavg()[0]:.1f}")
    print(f"{'':8}{'median':>8}{'min':>8}{'max':>8}   max - Lease's duration")
    for peer, gaps in found.items():
        middle, most = statistics.median(gaps), max(gaps)
        print(f"{peer:8}{middle:8.2f}{min(gaps):8.2f}{most:8.2f}   {most - duration:+.2f} s")
    if len(found) == len(PEERS):
        ratios = [p / b for p, b in zip(found[PLUGIN], found[BARE], strict=True)]
        print(f"{PLUGIN} / {BARE}: {statistics.median(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--lease", nargs=3, metavar=tuple(DEFAULT_TIMES))
    arguments = parser.parse_args()
    given = arguments.lease
    times = dict(zip(DEFAULT_TIMES, given, strict=True)) if given else printed_times()
    found: dict[str, list[float]] = {peer: [] for peer in arguments.peers}
    with cluster() as running, pairs(running, arguments.peers, times) as both:
        for number in range(arguments.rounds):
            for pair in both:
                found[pair.peer].append(gap(pair))
                print(f"  round {number + 1} {pair.peer}: {found[pair.peer][-1]:.2f} s", flush=True)
    report(found, times)


if __name__ == "__main__":
    main()
