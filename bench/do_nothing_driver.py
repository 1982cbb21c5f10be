"""The least that a node's driver can be while nothing happens: it listens, and does nothing.

    python -m bench.do_nothing_driver KUBECONFIG SOCKET

Watches on the same kinds of objects, through the same client; a gRPC server without a service at
a socket; a netlink socket for the kernel's events. Whatever publishes devices has at least these.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import grpc.aio
import pyudev

from kube.calls.api import connect
from kube.resources import Resource
from kube.stores.api import Store

WATCHED = (
    Resource("akri.sh", "v0", "configurations"),
    Resource("akri.sh", "v0", "instances"),
    Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False),
)


async def listen(kubeconfig: Path, socket: str) -> None:
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
    monitor.start()
    asyncio.get_running_loop().add_reader(monitor.fileno(), lambda: monitor.poll(0))
    server = grpc.aio.server()
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    async with connect(kubeconfig) as client, asyncio.TaskGroup() as tasks:
        stores: list[Store[None]] = [
            Store(client, resource.select(), lambda _: None) for resource in WATCHED
        ]
        for store in stores:
            tasks.create_task(store.run())
        for store in stores:
            await store.synced.wait()
        print("listening", flush=True)


if __name__ == "__main__":
    asyncio.run(listen(Path(sys.argv[1]), sys.argv[2]))
