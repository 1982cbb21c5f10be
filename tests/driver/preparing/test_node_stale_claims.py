"""Claims that no pod has any more are let go, and no others."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing import node_stale_claims
from driver.preparing.files import cdi
from driver.preparing.files.prepared import Home, PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.node_stale_claims import StaleClaims
from kube.calls.api import ApiClient
from kube.events.api import Event
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    HOME,
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)
from tests.driver.earlier_files import newer_cdi_file
from tests.driver.preparing.grants.test_renewals import a_pod
from tests.driver.tasks import running, until
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder
from tests.fakes.pod_resources import FakePodResources

WANTED, OTHER = a_reference(1), a_reference(2)
FILE = cdi.file_name(WANTED.uid)


class World:
    """A node with claims, its kubelet's listing, and an API server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source, self.reader, self.events = FakeSource(), FakeReader(), list[Event]()
        self.source.known.update(some_instances(an_instance(), an_instance("loop-bbbbbb")))
        self.source.discovered.set()
        self.pods: list[Any] = []
        self.cdi = FakeFolder(Disk())
        self.looks = 0
        self.kubelet = FakePodResources(root / "pod-resources", on_list=self._looked)

    def _looked(self) -> None:
        self.looks += 1

    async def list(self, _: Any) -> SimpleNamespace:
        return SimpleNamespace(items=self.pods)

    async def start(self) -> KubeletClaims:
        lock = ProcessLock(self.root / "lock")
        node = Node(NODE, BOOT, data=FakeFolder(Disk()), cdi_files=self.cdi, lock=lock)
        self.claims = KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))
        await self.claims.recover()
        return self.claims

    @asynccontextmanager
    async def looking(self, grace: timedelta = timedelta(seconds=0.05)) -> AsyncIterator[None]:
        client = cast("ApiClient", self)
        stale = StaleClaims(client, NODE, self.root, self.claims, grace, self.events.append)
        async with running(stale.run()):
            yield

    def lists(self, claim: PreparedClaim, *, by_name: bool) -> None:
        """The kubelet lists a claim, by one of the two that it says of it."""
        (device,) = cdi.device_ids(claim.devices[0])
        named = {"claim_name": claim.reference.name, "claim_namespace": claim.reference.namespace}
        resource = v1.ClaimResource(cdi_devices=[v1.CDIDevice(name=device)])
        listed = v1.DynamicResource(
            **(named if by_name else {}), claim_resources=[] if by_name else [resource]
        )
        container = v1.ContainerResources(name="c", dynamic_resources=[listed])
        self.kubelet.answer = v1.ListPodResourcesResponse(
            pod_resources=[v1.PodResources(name="p", namespace="default", containers=[container])]
        )

    async def several_looks(self) -> None:
        begin = self.looks
        await until(lambda: self.looks >= begin + 4)


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield World(Path(root))


async def test_claim_that_is_gone_everywhere_is_let_go_with_an_event(world: World) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored.clear()

    async with world.kubelet, world.looking():
        await until(lambda: not world.cdi.files)
        await until(lambda: bool(world.events))

    (event,) = world.events
    assert (event.regarding.kind, event.regarding.name) == ("Node", NODE)
    assert (event.regarding.uid, event.reason) == (HOME.node, "StaleClaimReleased")
    assert event.note == (
        f"ResourceClaim {WANTED} was prepared here with node-a/loop-aaaaaa: the API server does"
        " not have it, and neither the kubelet nor a pod names it."
    )


async def test_claim_that_has_its_devices_no_more_is_let_go(world: World) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.put(WANTED, a_result("loop-bbbbbb"))

    async with world.kubelet, world.looking():
        await until(lambda: not world.cdi.files)
        await until(lambda: bool(world.events))

    assert "it no longer has its devices, and neither the kubelet" in world.events[0].note


@pytest.mark.parametrize("device", ["loop-aaaaaa", "loop-bbbbbb"])
async def test_claim_that_comes_into_use_while_it_is_let_go_stays(
    world: World, device: str
) -> None:
    """The one that has just been allocated anew, and that the other driver prepares."""
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored[WANTED.name]["status"] = {}
    other = ProcessLock(world.root / "lock")

    async with world.kubelet, world.looking():
        async with other.held_for(WANTED.uid):
            await until(lambda: world.looks >= 2)
            await asyncio.sleep(0.2)
            world.reader.put(WANTED, a_result(device))
            async with other.held(nothing):
                known = some_instances(an_instance(device))
                claim = prepared(WANTED, a_result(device), instances=known)
                world.cdi.write(FILE, cdi.dump(claim))
        await world.several_looks()

        assert world.cdi.files == {FILE: cdi.dump(claim)}
        assert not world.events


async def nothing(is_foreign: bool) -> None:
    """What a process does that enters the lock."""


async def test_claim_of_the_same_name_that_came_later_speaks_for_nothing(world: World) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.put(a_reference(9, name=WANTED.name))

    async with world.kubelet, world.looking():
        await until(lambda: not world.cdi.files)


async def test_claim_stays_for_the_grace(world: World) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored.clear()

    async with world.kubelet, world.looking(timedelta(hours=1)):
        await until(lambda: world.looks >= 1)
        assert FILE in world.cdi.files


@pytest.mark.parametrize("by_name", [True, False])
async def test_claim_that_the_kubelet_lists_stays(world: World, by_name: bool) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored.clear()
    world.lists(prepared(WANTED), by_name=by_name)

    async with world.kubelet, world.looking():
        await world.several_looks()
        assert FILE in world.cdi.files


async def test_claim_that_a_pod_of_the_node_names_stays(world: World) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored.clear()
    world.pods = [a_pod("user")]

    async with world.kubelet, world.looking():
        await world.several_looks()
        assert FILE in world.cdi.files
        world.pods = [a_pod("user", "Failed")]
        await until(lambda: not world.cdi.files)


@pytest.mark.parametrize("error", [ConnectionError("away"), None])
async def test_claim_that_nobody_was_asked_about_stays(
    world: World, error: Exception | None
) -> None:
    world.reader.put(WANTED)
    await (await world.start()).prepare([WANTED])
    world.reader.stored.clear()
    world.reader.errors[WANTED.name] = error
    world.kubelet.refuse = "" if error else "no"

    async with world.kubelet, world.looking():
        await world.several_looks()
        assert FILE in world.cdi.files


async def test_claim_of_another_cluster_goes_though_the_kubelet_lists_it(world: World) -> None:
    stranger = replace(prepared(WANTED), home=Home(HOME.node, "another"))
    world.cdi.files[FILE] = cdi.dump(stranger)
    world.lists(stranger, by_name=False)
    claims = await world.start()
    world.reader.put(OTHER)
    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], Failure)

    async with world.kubelet, world.looking(timedelta(hours=1)):
        await until(lambda: not world.cdi.files)

    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], PreparedClaim)
    assert "it is of another cluster" in world.events[0].note


async def test_claim_of_a_former_node_object_goes_when_the_kubelet_denies_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = replace(prepared(WANTED), home=Home("former", HOME.cluster))
    world.cdi.files[FILE] = cdi.dump(former)
    world.lists(former, by_name=False)
    world.reader.put(WANTED)
    await world.start()
    monkeypatch.setattr(node_stale_claims, "LOOK_SECONDS", 0.02)

    async with world.kubelet, world.looking():
        await world.several_looks()
        assert FILE in world.cdi.files
        world.kubelet.answer = v1.ListPodResourcesResponse()
        await until(lambda: not world.cdi.files)


async def test_unreadable_record_is_written_anew_where_the_api_server_has_the_claim(
    world: World,
) -> None:
    world.reader.put(WANTED)
    world.reader.put(OTHER, a_result("loop-bbbbbb"))
    world.cdi.files[FILE] = b"{"
    claims = await world.start()
    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], Failure)

    async with world.kubelet, world.looking(timedelta(hours=1)):
        await until(lambda: not claims.doubtful)

    assert claims.prepared[WANTED.uid] == prepared(WANTED)
    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], PreparedClaim)


async def test_unreadable_record_of_a_claim_that_is_gone_goes(world: World) -> None:
    world.cdi.files[FILE] = b"{"
    claims = await world.start()

    async with world.kubelet, world.looking():
        await until(lambda: not world.cdi.files)

    assert not claims.doubtful
    assert "was prepared here with its devices" in world.events[0].note


async def test_record_of_a_newer_driver_stays(world: World) -> None:
    newer = world.cdi.files[FILE] = newer_cdi_file(prepared(WANTED))
    await world.start()

    async with world.kubelet, world.looking():
        await world.several_looks()

    assert world.cdi.files[FILE] == newer
    assert not world.events


async def test_api_server_that_is_away_keeps_everything(world: World) -> None:
    world.cdi.files[FILE] = cdi.dump(replace(prepared(WANTED), home=Home("", "another")))
    world.reader.home_error = ConnectionError("away")
    await world.start()

    async with world.kubelet, world.looking():
        await until(lambda: world.reader.homes >= 3)
        assert FILE in world.cdi.files
        world.reader.home_error = None
        await until(lambda: not world.cdi.files)
