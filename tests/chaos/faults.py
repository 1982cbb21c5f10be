"""What goes wrong, at random: processes are killed and stopped, networks are cut.

Every fault mends itself: it says after how long, and how.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from local_cluster.api import Cluster
from tests.chaos.objects import Object, is_going, is_over, key, label, shown

CDI_FOLDER = "/run/cdi"
BALLAST = f"{CDI_FOLDER}/ballast"
PART_OF = "app.kubernetes.io/part-of"
SYSTEM = f"{PART_OF}=moorage"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager")
OF_A_NODE = ("kubelet-node-a", "kubelet-node-b", "containerd-node-a", "containerd-node-b")


@dataclass(frozen=True)
class Fault:
    """Something that is broken for a while.

    Attributes:
        what: What was done.
        seconds: How long it lasts.
        mend: Ends it.
    """

    what: str
    seconds: float
    mend: Callable[[], None]


@dataclass
class Faults:
    """Breaks one thing after the other."""

    cluster: Cluster
    random: Random
    more: tuple[Callable[[], Fault | None], ...] = ()

    def kinds(self) -> list[tuple[int, Callable[[], Fault | None]]]:
        """Each with its weight."""
        return [
            *((1, each) for each in self.more),
            (4, self.kill_ours),
            (3, self.stop_ours),
            (2, self.kill_part),
            (2, self.stop_part),
            (1, self.cut_node),
            (1, self.fill_disk),
            (1, self.replace_ours),
        ]

    def kill_ours(self) -> Fault | None:
        """SIGKILL to a container of ours; the kubelet starts it again."""
        found = sorted(self._containers())
        if not found:
            return None
        name, node, identity = self.random.choice(found)
        for pid in processes_of(identity):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return Fault(f"kill {name} on {node}", 0, nothing)

    def stop_ours(self) -> Fault | None:
        """SIGSTOP to a container of ours."""
        found = sorted(self._containers())
        if not found:
            return None
        name, node, identity = self.random.choice(found)
        pids = processes_of(identity)
        _signal(pids, signal.SIGSTOP)
        seconds = self.random.choice((1.0, 4.0, 9.0, 20.0))
        return Fault(
            f"stop {name} on {node} for {seconds:g} s",
            seconds,
            lambda: _signal(pids, signal.SIGCONT),
        )

    def kill_part(self) -> Fault:
        part = self.cluster.part(self.random.choice((*CONTROL_PLANE, *OF_A_NODE)))
        part.kill()
        seconds = self.random.choice((0.0, 2.0, 6.0))
        return Fault(f"kill {part.name} for {seconds:g} s", seconds, part.start)

    def stop_part(self) -> Fault:
        part = self.cluster.part(self.random.choice((*CONTROL_PLANE, *OF_A_NODE)))
        part.stop()
        seconds = self.random.choice((1.0, 3.0, 8.0))
        return Fault(f"stop {part.name} for {seconds:g} s", seconds, part.cont)

    def cut_node(self) -> Fault:
        """A node and its pods do not reach the API server."""
        node = self.random.choice(self.cluster.nodes)
        route = ("blackhole", f"{self.cluster.address}/32")
        node.exec(("ip", "route", "replace", *route), check=False)
        seconds = self.random.choice((2.0, 8.0, 15.0))
        return Fault(
            f"cut {node.name} off for {seconds:g} s",
            seconds,
            lambda: _ignored(node.exec(("ip", "route", "del", *route), check=False)),
        )

    def fill_disk(self) -> Fault | None:
        """The folder of CDI files takes nothing more."""
        node = self.random.choice(self.cluster.nodes)
        ballast = node.path(BALLAST)
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
        seconds = self.random.choice((2.0, 10.0))
        return Fault(
            f"fill the disk of {node.name} for {seconds:g} s",
            seconds,
            lambda: ballast.unlink(missing_ok=True),
        )

    def step_clock(self) -> Fault:
        """Of the whole machine: whoever wants this says so."""
        step = self.random.choice((-120.0, -7.0, 7.0, 120.0))
        _step(step)
        return Fault(f"step the clock by {step:g} s for 10 s", 10, lambda: _step(-step))

    def replace_ours(self) -> Fault | None:
        """What an upgrade does: new pods in place of the old ones."""
        found = [
            (kind, body["metadata"]["namespace"], body["metadata"]["name"])
            for kind in ("daemonset", "deployment")
            for body in self.cluster.list(kind, selector=SYSTEM)
        ]
        kind, namespace, name = self.random.choice(sorted(found))
        self.cluster.kubectl("rollout", "restart", f"{kind}/{name}", "-n", namespace)
        return Fault(f"replace {kind}/{name}", 0, nothing)

    def _containers(self) -> Iterator[tuple[str, str, str]]:
        """Pod and container, node, and containerd's name of it."""
        for pod in self.cluster.list("pods", selector=SYSTEM):
            for status in pod["status"].get("containerStatuses") or ():
                if "running" in status["state"]:
                    name = f"{pod['metadata']['name']}/{status['name']}"
                    identity = status["containerID"].removeprefix("containerd://")
                    yield name, pod["spec"]["nodeName"], identity


def processes_of(container: str) -> list[int]:
    """The processes of a container, as this machine numbers them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if container in (folder / "cgroup").read_text():
                found.append(int(folder.name))
    return found


def is_ours(pod: Object) -> bool:
    """Whether a pod is to be there for as long as Moorage is; one that is over was a job's."""
    return label(pod, PART_OF) == "moorage" and not is_over(pod) and not is_going(pod)


def end_back_off(cluster: Cluster) -> str:
    """What an administrator does whose pods wait minutes until they are started again."""
    found = [pod for pod in cluster.list("pods", selector=SYSTEM) if _waits_long(pod)]
    for pod in found:
        namespace, name = key(pod)
        cluster.kubectl("delete", "pod", "-n", namespace, name, "--wait=false")
    return f"delete what backs off: {[shown(pod) for pod in found]}"


def _waits_long(pod: Object) -> bool:
    states = (s["state"] for s in pod["status"].get("containerStatuses") or ())
    return any((s.get("waiting") or {}).get("reason") == "CrashLoopBackOff" for s in states)


def small_disks(cluster: Cluster) -> None:
    """Before Moorage comes: a file system for CDI files that can be filled.

    containerd follows the folder that it finds when it starts, and not another one at its place.
    """
    for node in cluster.nodes:
        node.exec(("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", CDI_FOLDER))
        cluster.part(f"containerd-{node.name}").restart()


def _step(seconds: float) -> None:
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def nothing() -> None:
    """Mends itself."""


def _ignored(_: object) -> None:
    """A fault that ended by itself, as a node that booted again."""
