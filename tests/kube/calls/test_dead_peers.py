"""A peer that is gone without a word: the kernel asks for a sign of life; silence has an end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from kube.backoff import Backoff
from kube.calls.api import connect
from kube.calls.apiserver_transport import KEEPALIVE_SECONDS
from kube.kinds import NODES
from kube.stores.api import Store, WatchSettings
from tests.fakes.scripted_apiserver import (
    bookmark,
    event,
    hangs,
    kubeconfig_for,
    lists,
    says,
    scripted,
    streams,
)
from tests.kube.builders import an_object


class StoppingProxy:
    """Forwards bytes until it is told to stop: then it keeps every connection open, and mute."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._serving: set[asyncio.Task[Any]] = set()
        self.opened: list[asyncio.Event] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; those that come after a stop are forwarded."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        forwards = asyncio.Event()
        forwards.set()
        self.opened.append(forwards)
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(reader, back, forwards))
                tasks.create_task(self._pump(there, writer, forwards))
        finally:
            back.close()
            writer.close()

    async def end(self) -> None:
        """Close every connection; one that is left open is told of by whichever test comes next."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, forwards: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(2**16):
                await forwards.wait()
                to.write(data)
                await to.drain()

    def stop(self) -> None:
        """Say nothing more on the connections that there are."""
        for forwards in self.opened:
            forwards.clear()


@asynccontextmanager
async def a_proxy(port: int) -> AsyncIterator[tuple[StoppingProxy, int]]:
    proxy = StoppingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await proxy.end()


def port_of(kubeconfig: Path) -> int:
    return int(kubeconfig.read_text().split("127.0.0.1:")[1].split()[0])


async def test_connection_behind_a_proxy_that_stops_forwarding_is_replaced(tmp_path: Path) -> None:
    settings = WatchSettings(idle_seconds=0.3, backoff=Backoff(first_seconds=0.01))
    async with scripted(tmp_path) as fake, a_proxy(port_of(fake.kubeconfig)) as (proxy, port):
        fake.will(
            lists(version=5),
            streams(bookmark(6), then=hangs),
            streams(event("ADDED", an_object("a", 7)), then=hangs),
        )
        async with connect(kubeconfig_for(tmp_path, port)) as client:
            store: Store[str] = Store(
                client, NODES.select(), lambda obj: str(obj["metadata"]["name"]), settings=settings
            )
            running = asyncio.create_task(store.run())
            try:
                assert await store.at_least(6, 5)
                proxy.stop()
                assert await store.at_least(7, 5)
            finally:
                running.cancel()
                await asyncio.wait([running])

    assert list(store) == ["a"]
    assert fake.seen[2].query["resourceVersion"] == "6"


async def test_kernel_asks_for_a_sign_of_life_on_every_connection(tmp_path: Path) -> None:
    """A host that vanished sends no reset; without questions its silence looks like peace."""
    async with scripted(tmp_path) as fake:
        fake.will(says({}))
        async with connect(fake.kubeconfig) as client:
            await client.get(NODES.at("n"))
            connector: Any = client.transport.session.connector
            (made,) = [
                transport.get_extra_info("socket")
                for connections in connector._conns.values()  # noqa: SLF001  The library shows no socket otherwise.
                for protocol, _ in connections
                if (transport := protocol.transport) is not None
            ]
            asks = made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            idle, interval, count, unanswered = (
                made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names
            )

    assert asks == 1
    assert idle + interval * count <= 2 * KEEPALIVE_SECONDS
    assert unanswered == KEEPALIVE_SECONDS * 1000


def test_silence_is_taken_for_death_soon_after_a_bookmark_is_missed() -> None:
    assert 60 < WatchSettings().idle_seconds < 90
