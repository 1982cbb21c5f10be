"""Claims are told what was prepared of their devices, and no claim waits for it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from driver.api import ConfigurationName
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing import apiserver_status
from driver.preparing.apiserver_status import ClaimStatuses, Times
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.write_limits import MOST_WRITES
from kube.calls.api import (
    ApiClient,
    ApiError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, a_reference, a_result, an_instance, some_instances
from tests.driver.tasks import running, until
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder


class World:
    """A node with two devices, and an API server that takes what it is told."""

    def __init__(self, lock: Path) -> None:
        self.source, self.reader, self.disk = FakeSource(), FakeReader(), Disk()
        folders = FakeFolder(self.disk), FakeFolder(self.disk)
        node = Node(NODE, BOOT, data=folders[0], cdi_files=folders[1], lock=ProcessLock(lock))
        self.claims = KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))
        self.applied: list[tuple[str, dict[str, Any]]] = []
        self.conditions: list[dict[str, str]] = []
        self.failures: list[ApiError] = []
        self.statuses = ClaimStatuses(cast("ApiClient", self), NODE, self.claims, self.source)
        self.see("/dev/a")

    async def apply(self, path: Any, body: Any, *, force: bool, options: Any) -> dict[str, Any]:
        assert path.subresource == "status"
        assert (force, options.field_manager) == (True, f"moorage.dev/{NODE}")
        if self.failures:
            raise self.failures.pop(0)
        (entry,) = body["status"]["devices"]
        self.applied.append((path.name, entry["data"]))
        self.conditions += entry["conditions"]
        self.reader.stored[path.name]["status"]["devices"] = body["status"]["devices"]
        return {}

    def start_again(self) -> None:
        """Another process, which remembers nothing of what was told."""
        self.statuses = ClaimStatuses(cast("ApiClient", self), NODE, self.claims, self.source)

    def unheard(self) -> None:
        """No handler has answered, and nothing is published of the device."""
        self.source.known = dict(some_instances(an_instance("loop-bbbbbb")))
        self.source.unheard = frozenset({ConfigurationName("loop")})
        for listener in self.source.listeners:
            listener()

    def see(self, path: str) -> None:
        specs = (DeviceSpec(path, path),)
        first = an_instance(device_specs=specs)
        self.source.known = dict(some_instances(first, an_instance("loop-bbbbbb")))
        self.source.discovered.set()

    async def prepare(self, number: int = 1, device: str = "loop-aaaaaa") -> None:
        wanted = self.reader.put(a_reference(number), a_result(device))
        (answer,) = (await self.claims.prepare([wanted])).values()
        assert isinstance(answer, PreparedClaim)

    def running(self) -> AbstractAsyncContextManager[None]:
        return running(self.statuses.run())

    def told(self) -> list[str]:
        return [name for name, _ in self.applied]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(apiserver_status, "TIMES", Times(settle=0.0))
    return World(tmp_path / "lock")


async def test_each_claim_is_told_once(world: World) -> None:
    async with world.running():
        await world.prepare(1)
        await until(lambda: world.told() == ["claim-1"])

        await world.prepare(1)
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: len(world.told()) > 1)

    assert world.told() == ["claim-1", "claim-2"]


async def test_what_an_earlier_process_prepared_is_told(world: World) -> None:
    await world.prepare()

    async with world.running():
        await until(lambda: world.told() == ["claim-1"])


async def test_a_restart_writes_only_what_is_not_stored(world: World) -> None:
    async with world.running():
        for number, device in ((1, "loop-aaaaaa"), (2, "loop-bbbbbb")):
            await world.prepare(number, device)
        await until(lambda: len(world.told()) == 2)
    del world.reader.stored["claim-2"]["status"]["devices"]

    world.start_again()
    async with world.running():
        await until(lambda: len(world.told()) > 2)
        world.see("/dev/b")
        await world.claims.renew()
        await until(lambda: len(world.told()) > 3)

    assert world.told()[2:] == ["claim-2", "claim-1"]


async def test_a_device_that_moved_while_no_driver_ran_is_told_anew(world: World) -> None:
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.applied) == 1)
    world.see("/dev/b")
    await world.claims.renew()

    world.start_again()
    async with world.running():
        await until(lambda: len(world.applied) > 1)

    assert [data["deviceNodes"] for _, data in world.applied] == [["/dev/a"], ["/dev/b"]]


async def test_a_restart_tells_claims_that_cannot_be_read(world: World) -> None:
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.applied) == 1)

    world.start_again()
    world.reader.error = UnavailableError("away")
    async with world.running():
        await until(lambda: len(world.applied) > 1)


async def test_a_device_that_moved_is_told_anew(world: World) -> None:
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.applied) == 1)

        world.see("/dev/b")
        await world.claims.renew()
        await until(lambda: len(world.applied) > 1)

    assert [data["deviceNodes"] for _, data in world.applied] == [["/dev/a"], ["/dev/b"]]


async def test_a_claim_is_prepared_though_it_cannot_be_told_and_told_later(world: World) -> None:
    world.failures = [UnavailableError("away")]

    async with world.running():
        await world.prepare()
        await until(lambda: world.told() == ["claim-1"])


async def test_a_claim_that_is_gone_keeps_no_other_from_being_told(world: World) -> None:
    world.failures = [NotFoundError("gone")]

    async with world.running():
        await world.prepare(1)
        await until(lambda: not world.failures)
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: world.told() == ["claim-2"])


@pytest.mark.parametrize(
    ("field", "warnings"), [("status.devices[0]", 0), ("status.devices[0].data", 1)]
)
async def test_a_claim_that_was_deallocated_meanwhile_is_no_warning(
    world: World, caplog: pytest.LogCaptureFixture, field: str, warnings: int
) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": field, "message": "not so"}]
    world.failures = [InvalidError("invalid", status=422, details={"causes": causes})]

    async with world.running():
        await world.prepare(1)
        await until(lambda: not world.failures)
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: world.told() == ["claim-2"])

    assert sum(record.levelname == "WARNING" for record in caplog.records) == warnings


async def test_who_is_refused_asks_seldom(world: World) -> None:
    await world.prepare(1)
    await world.prepare(2, "loop-bbbbbb")
    world.failures = [ForbiddenError("not you")] * 9

    async with world.running():
        await until(lambda: len(world.failures) < 9)
        await world.prepare(1)

    assert len(world.failures) >= 7


async def goes_offline(world: World) -> None:
    """A claim is prepared, and then its device goes; each is told."""
    await world.prepare()
    await until(lambda: len(world.conditions) == 1)
    world.source.see(an_instance(device_specs=(DeviceSpec("/dev/a", "/dev/a"),), online=False))
    await until(lambda: len(world.conditions) == 2)


async def test_a_device_that_goes_and_returns_is_told_with_the_time_of_each_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = (datetime(2026, 11, 27, 18, minute, tzinfo=UTC) for minute in range(9))
    monkeypatch.setattr(apiserver_status, "wall_clock", lambda: next(moments))
    async with world.running():
        await goes_offline(world)
        world.source.see(an_instance(device_specs=(DeviceSpec("/dev/a", "/dev/a"),)))
        await until(lambda: len(world.conditions) == 3)

    assert [(c["status"], c["reason"]) for c in world.conditions] == [
        ("True", "Prepared"),
        ("False", "Offline"),
        ("True", "Prepared"),
    ]
    assert len({c["lastTransitionTime"] for c in world.conditions}) == 3


async def test_a_restart_writes_no_condition_anew_and_keeps_its_time(world: World) -> None:
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.conditions) == 1)
    (stored,) = world.reader.stored["claim-1"]["status"]["devices"]
    stored["conditions"][0]["lastTransitionTime"] = "2026-11-01T00:00:00Z"

    world.start_again()
    async with world.running():
        world.see("/dev/b")
        await world.claims.renew()
        await until(lambda: len(world.conditions) == 2)

    assert world.conditions[1]["lastTransitionTime"] == "2026-11-01T00:00:00Z"


async def test_nothing_is_told_before_the_first_discovery(world: World) -> None:
    await world.prepare()
    world.source.discovered.clear()

    async with world.running():
        await asyncio.sleep(0.05)
        assert world.told() == []
        world.source.discovered.set()
        await until(lambda: world.told() == ["claim-1"])


async def test_a_change_of_other_devices_writes_nothing(world: World) -> None:
    async with world.running():
        await world.prepare(1)
        await until(lambda: world.told() == ["claim-1"])
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: len(world.told()) > 1)
        world.source.see(an_instance("loop-bbbbbb", online=False))
        await until(lambda: len(world.told()) > 2)

    assert "claim-1" not in world.told()[1:]


async def test_a_claim_that_got_its_device_again_at_once_is_told_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes removed the entry with the first allocation, which was over within a moment."""
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.told()) == 1)
        monkeypatch.setattr(apiserver_status, "TIMES", Times(settle=0.2))

        await world.claims.unprepare([a_reference(1)])
        await world.prepare()

        await until(lambda: len(world.told()) == 2)


def hot(degrees: int) -> Instance:
    """A device whose handler reports a figure in its message."""
    properties = {
        "moorage.dev/health": "degraded",
        "moorage.dev/health-message": f"it is at {degrees} degrees",
    }
    return an_instance(device_specs=(DeviceSpec("/dev/a", "/dev/a"),), properties=properties)


async def test_a_device_whose_condition_flaps_is_told_seldom_and_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_status, "TIMES", Times(settle=0.0, window=3600.0))
    async with world.running():
        await world.prepare(1)
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: len(world.told()) == 2)
        for degrees in range(20):
            world.source.see(hot(degrees))
            await asyncio.sleep(0.01)
        assert world.told().count("claim-1") == MOST_WRITES

        monkeypatch.setattr(apiserver_status, "TIMES", Times(settle=0.0, window=0.0))
        world.source.see(an_instance("loop-bbbbbb", online=False))

        await until(lambda: any("19 degrees" in each["message"] for each in world.conditions))
        await until(lambda: world.told().count("claim-2") == 2)


async def test_what_is_told_late_is_told_without_another_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_status, "TIMES", Times(settle=0.0, window=0.3))
    async with world.running():
        await world.prepare()
        await until(lambda: len(world.told()) == 1)
        for degrees in range(20):
            world.source.see(hot(degrees))
            await asyncio.sleep(0)

        await until(lambda: "19 degrees" in world.conditions[-1]["message"])


async def test_a_condition_stays_while_it_is_unknown_whether_the_device_is_there(
    world: World,
) -> None:
    """A driver that restarts while a device is away, and its handler has not answered yet."""
    async with world.running():
        await goes_offline(world)

        world.unheard()
        await asyncio.sleep(0.05)
        assert len(world.conditions) == 2

    world.start_again()
    async with world.running():
        await world.prepare(2, "loop-bbbbbb")
        await until(lambda: len(world.conditions) == 3)

    assert world.told() == ["claim-1", "claim-1", "claim-2"]
