"""Histories of a driver and two handlers of one name, over real sockets.

Whatever happens, a device counts as gone only if its handler said so or was away for five minutes:
an answer that is complete has all others, and one that lacks some is not complete. What no handler
may have is never there, and a flood takes nothing away.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from driver.devices import Device, Mount
from driver.handlers import registration_socket, sdk
from driver.handlers.external_handlers import FILE
from driver.handlers.registrations import Endpoint, HandlerState
from driver.handlers.remembered import load
from driver.handlers.report_limits import HandlerLimits
from driver.handlers.sdk import serve
from driver.handlers.sdk_requests import Handler, Place
from driver.handlers.table import REMOVED_AFTER
from driver.instances import handler_discoveries as discoveries
from driver.plumbing.disk import Folder
from kube.backoff import Backoff
from tests.driver.handler_nodes import ANode, Shelf, running

ACTIONS = st.one_of(
    st.tuples(
        st.sampled_from(["start", "stop", "devices", "greed", "flood"]), st.sampled_from([0, 1])
    ),
    st.tuples(st.sampled_from(["restart", "wait"]), st.just(0)),
)


LIMITS = HandlerLimits(most_devices=9)
ROOT = Device("root", mounts=(Mount("/", "/"),))
"""What no handler may have."""

BEGINNING = [(action, number) for number in (0, 1) for action in ("devices", "start")]


@dataclass
class Peer:
    """A handler that runs at times, in a folder whose agent is the node."""

    place: Place
    shelf: Shelf = field(default_factory=Shelf)
    process: AsyncExitStack | None = None
    is_known: bool = False
    reported: set[str] = field(default_factory=set)

    async def say(self, devices: list[Device]) -> None:
        async with self.shelf.changed:
            self.shelf.devices = devices
            self.shelf.changed.notify_all()

    async def flood(self) -> None:
        before = self.shelf.devices
        await self.say([Device(f"flood-{n}") for n in range(LIMITS.most_devices + 1)])
        await asyncio.sleep(0)
        await self.say(before)

    @property
    def address(self) -> str:
        return str(self.place.handler_socket("shelf"))


class World:
    """One node and its handlers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = ANode(folder, limits=LIMITS)
        self.driver = AsyncExitStack()
        self.numbers = itertools.count()
        self.peers = [Peer(Place(folder / name)) for name in "ab"]
        for peer in self.peers:
            peer.place.folder.mkdir()
            # Two handlers of one name need two sockets; the agent's is the same.
            peer.place.agent_socket.symlink_to(Place(folder).agent_socket)

    async def start_driver(self) -> None:
        await self.driver.enter_async_context(running(self.node.run()))

    async def do(self, action: str, number: int) -> None:
        peer = self.peers[number]
        match action:
            case "start" if peer.process is None:
                peer.process = AsyncExitStack()
                handler = Handler("shelf", peer.shelf.discover)
                await peer.process.enter_async_context(running(serve(handler, peer.place)))
                peer.is_known = True
            case "stop" if peer.process is not None:
                await peer.process.aclose()
                peer.process = None
            case "devices":
                await peer.shelf.set(f"{number}-{next(self.numbers)}", f"{number}-always")
            case "greed":
                await peer.say([*peer.shelf.devices, ROOT])
            case "flood":
                await peer.flood()
            case "restart":
                await self.driver.aclose()
                now = self.node.now
                self.node = ANode(self.folder, now=now, limits=LIMITS)
                await self.start_driver()
            case "wait":
                await self.wait_five_minutes()
            case _:
                """A handler that runs is not started, nor one that does not stopped."""

    async def wait_five_minutes(self) -> None:
        self.node.now += REMOVED_AFTER
        for peer in self.peers:
            if peer.process is None:
                peer.is_known, peer.reported = False, set()

    def states(self) -> dict[str, HandlerState]:
        table = self.node.external.table
        return {h.endpoint.address: h.state for h in table.named("shelf")}

    async def settle(self) -> None:
        for peer in self.peers:
            if peer.process is not None:
                peer.reported = {device.id for device in peer.shelf.devices if device != ROOT}
        expected = {
            p.address: HandlerState.ACTIVE if p.process else HandlerState.OFFLINE
            for p in self.peers
            if p.is_known
        }
        running_now = {p.address for p in self.peers if p.process}
        await self.node.until(
            lambda: (
                self.states() == expected
                and self.answered(running_now)
                and self.is_right()
                and self.is_written()
            )
        )

    def answered(self, addresses: set[str]) -> bool:
        table = self.node.external.table
        return all(table[Endpoint("shelf", address)].conversations for address in addresses)

    def is_written(self) -> bool:
        """Whether the next driver will know the handlers that this one knows."""
        content = Folder(self.folder / "data").read(FILE) or b""
        return {r.registration.endpoint.address for r in load(content)} == set(self.states())

    def is_right(self) -> bool:
        """Whether the node knows what it can know."""
        known = set().union(*(peer.reported for peer in self.peers))
        alive = set().union(*(peer.reported for peer in self.peers if peer.process))
        ids = set(self.node.ids() or ())
        return alive <= ids <= known

    def check(self) -> None:
        """Nothing is gone that may be there."""
        if self.node.ids() is not None and self.node.heard.complete:
            known = set().union(*(peer.reported for peer in self.peers))
            assert set(self.node.ids() or ()) == known


async def live(actions: list[tuple[str, int]], folder: Path) -> None:
    world = World(folder)
    async with world.driver:
        await world.start_driver()
        try:
            for action in [*BEGINNING, *actions]:
                await world.do(*action)
                await world.settle()
                world.check()
        finally:
            for peer in world.peers:
                if peer.process is not None:
                    await peer.process.aclose()
        await world.driver.aclose()


@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(ACTIONS, min_size=2, max_size=8))
def test_nothing_is_gone_before_its_time(
    monkeypatch: pytest.MonkeyPatch, actions: list[tuple[str, int]]
) -> None:
    for module in (registration_socket, sdk):
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
        monkeypatch.setattr(module, "GRACE_SECONDS", 0)
    monkeypatch.setattr(discoveries, "_BACKOFF", Backoff(0.01, 0.05))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(actions, Path(folder)))
