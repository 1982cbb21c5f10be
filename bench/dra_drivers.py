"""DRA drivers to be measured: Moorage's own, an example driver's binary, one that does nothing.

Each has a kubelet's folders of its own, in which nobody is the kubelet but the client here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from driver.api import DRIVER_NAME
from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.kubelet_api.dra.v1 import api_pb2_grpc as v1_grpc

SECONDS = 60.0
POLL_SECONDS = 0.005

Claims = Sequence[v1.Claim]


@dataclass
class Driver:
    """A driver's process, and how it is asked.

    Attributes:
        name: In tables.
        driver: In claims; "" for one that never looks at them.
        socket: Where it serves claims.
    """

    name: str
    driver: str
    folder: Path
    command: Sequence[str]
    socket: Path
    process: subprocess.Popen[bytes] | None = None
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.folder / "log"

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdout=output, stderr=output, env=environment()
            )

    def kill(self) -> None:
        """As a crash: nothing is tidied up."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def wait_for_socket(self) -> None:
        deadline = time.monotonic() + SECONDS
        while not _accepts(self.socket):
            if time.monotonic() > deadline or (self.process and self.process.poll() is not None):
                raise SystemExit(f"{self.name} does not serve:\n{self.log.read_text()[-3000:]}")
            time.sleep(POLL_SECONDS)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            self.wait_for_socket()
            yield
        finally:
            self.kill()


def _accepts(path: Path) -> bool:
    """A socket is there before its server listens."""
    with socket.socket(socket.AF_UNIX) as ours, suppress(OSError):
        ours.connect(str(path))
        return True
    return False


def environment() -> dict[str, str]:
    """As in the pod: memory is not kept apart for threads, and modules are compiled beforehand."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "MALLOC_ARENA_MAX": "1"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a driver is to be measured.

    Attributes:
        folder: Of its own, on a disk.
        cdi: Of its own, in memory as on nodes.
    """

    kubeconfig: Path
    node: str
    folder: Path
    cdi: Path

    @property
    def kubelet(self) -> Path:
        return self.folder / "kubelet"

    def make_folders(self, driver: str) -> None:
        (self.kubelet / "plugins_registry").mkdir(parents=True)
        (self.kubelet / "plugins" / driver).mkdir(parents=True)
        self.cdi.mkdir()


def moorage(place: Place) -> Driver:
    """The driver of a node, with the handler of udev."""
    place.make_folders(DRIVER_NAME)
    command = (
        *(sys.executable, "-m", "bench.as_pod", "driver", "node"),
        *(f"--kubeconfig={place.kubeconfig}", f"--node-name={place.node}"),
        *(f"--kubelet-root={place.kubelet}", f"--cdi-root={place.cdi}"),
        f"--handler-registration-socket={place.folder / 'agent.sock'}",
        "--embedded-handlers=udev",
    )
    socket = place.kubelet / "plugins" / DRIVER_NAME / "dra.sock"
    return Driver("Moorage", DRIVER_NAME, place.folder, command, socket)


def example(place: Place, binary: Path, devices: int) -> Driver:
    """kubernetes-sigs/dra-example-driver with its client's limits out of the way."""
    name = "gpu.example.com"
    place.make_folders(name)
    command = (
        *(str(binary), f"--kubeconfig={place.kubeconfig}", f"--node-name={place.node}"),
        *("--kube-api-qps=5000", "--kube-api-burst=10000", f"--num-devices={devices}"),
        f"--kubelet-registrar-directory-path={place.kubelet / 'plugins_registry'}",
        f"--kubelet-plugins-directory-path={place.kubelet / 'plugins'}",
        f"--cdi-root={place.cdi}",
    )
    socket = place.kubelet / "plugins" / name / "dra.sock"
    return Driver("example", name, place.folder, command, socket)


def do_nothing(folder: Path) -> Driver:
    """What stands in for it where there is no binary."""
    folder.mkdir(parents=True)
    command = (sys.executable, "-m", "bench.do_nothing_dra_driver", str(folder / "dra.sock"))
    return Driver("do-nothing", "", folder, command, folder / "dra.sock")


class Kubelet:
    """The kubelet's calls at a driver's socket; a refusal ends the benchmark."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._channel = grpc.aio.insecure_channel(f"unix:{driver.socket}")
        self._plugin: v1_grpc.DRAPluginAsyncStub = v1_grpc.DRAPluginStub(self._channel)

    async def prepare(self, claims: Claims) -> None:
        answer = await self._plugin.NodePrepareResources(
            v1.NodePrepareResourcesRequest(claims=claims), timeout=SECONDS
        )
        self._check(claims, {uid: entry.error for uid, entry in answer.claims.items()})

    async def unprepare(self, claims: Claims) -> None:
        answer = await self._plugin.NodeUnprepareResources(
            v1.NodeUnprepareResourcesRequest(claims=claims), timeout=SECONDS
        )
        self._check(claims, {uid: entry.error for uid, entry in answer.claims.items()})

    def _check(self, claims: Claims, errors: dict[str, str]) -> None:
        for claim in claims:
            if error := errors[claim.uid]:
                raise SystemExit(f"{self._driver.name}: {error}")

    async def close(self) -> None:
        await self._channel.close()
