"""A driver that serves claims, as a process that may die at any moment."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from driver.devices import DeviceSpec
from driver.plumbing.disk import Folder
from driver.plumbing.disk_lock import ProcessLock
from driver.plumbing.kubelet_sockets import KubeletPaths
from driver.preparing.grants import disk_grants
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import serve
from driver.preparing.lost_claims import Use
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, a_reference, a_result, an_instance, some_instances
from tests.driver.crashes.lives import AtOnce
from tests.fakes.claims import FakeReader, FakeSource

KEPT, WANTED, RIVAL = a_reference(1, name="kept"), a_reference(2), a_reference(3)
ASKED = {"env": {"FPS": "25"}, "mode": "0640"}
"""What `WANTED` asks of its device."""

DEVICE, OTHER = "loop-aaaaaa", "loop-bbbbbb"
MOVED = "moved"
"""A file whose presence says that the device of `WANTED` is elsewhere."""


def place(root: Path) -> str:
    """Where the device of `WANTED` is."""
    return "/dev/elsewhere" if (root / MOVED).exists() else f"/dev/{DEVICE}"


def serve_claims(root: Path, orders: Connection) -> None:
    """Serve `<root>/kubelet` until killed; see `lives.Life` for the orders."""
    asyncio.run(_main(root, orders, AtOnce()))


def serve_beside_a_slow_disk(root: Path, orders: Connection) -> None:
    """The same, with what is written in threads."""
    disk_grants.SLOW_SECONDS = -1
    asyncio.run(_main(root, orders, ThreadPoolExecutor()))


async def _main(root: Path, orders: Connection, threads: ThreadPoolExecutor) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(threads)
    reader = FakeReader()
    reader.put(KEPT, a_result(OTHER))
    reader.put(WANTED, a_result(DEVICE), asked=ASKED)
    reader.put(RIVAL, a_result(DEVICE))
    source = _devices(root)
    paths = KubeletPaths(root / "kubelet", f"{os.getpid():08d}")
    node = Node(
        NODE,
        BOOT,
        data=Folder(paths.data, lasting=False),
        cdi_files=Folder(root / "cdi", lasting=False),
        lock=ProcessLock(paths.lock),
    )
    claims = KubeletClaims(node, reader, source, pools=frozenset({NODE}))
    orders.send("ready")
    orders.recv()
    async with serve(paths, claims, source):
        orders.send("serves")
        loop.add_reader(orders.fileno(), _obey, orders, root, source, claims)
        await asyncio.Event().wait()


def _devices(root: Path) -> FakeSource:
    source = FakeSource()
    spec = DeviceSpec(f"/dev/{DEVICE}", place(root), "rw")
    source.known.update(some_instances(an_instance(DEVICE, device_specs=(spec,))))
    source.known.update(some_instances(an_instance(OTHER)))
    source.discovered.set()
    return source


_running: set[asyncio.Task[None]] = set()


def _obey(orders: Connection, root: Path, source: FakeSource, claims: KubeletClaims) -> None:
    """To look where devices are now, and at lost claims, all in use; or to cancel what runs."""
    if orders.recv() == "cancel":
        work = claims.calls.finish(0)
    else:
        source.known.update(_devices(root).known)
        work = _renew(orders, claims)
    _running.add(asyncio.get_running_loop().create_task(work))


async def _renew(orders: Connection, claims: KubeletClaims) -> None:
    await claims.renew(again=True)
    for uid in claims.lost:
        await claims.cleanup.settle(uid, _in_use)
    orders.send("renewed")


async def _in_use() -> Use:
    return Use.RUNNING
