"""Each claim gets its own answer, whatever API server, discovery and disk do."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from driver.api import ClaimUid, ConfigurationName
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing import apiserver_claims, kubelet_calls, kubelet_claims
from driver.preparing.files import cdi
from driver.preparing.files.prepared import ClaimReference, PreparedClaim
from driver.preparing.grants.claims import Failure, allocated_claim
from driver.preparing.grants.disk_grants import Node
from driver.preparing.grants.rival_claims import Renewal
from driver.preparing.kubelet_claims import KubeletClaims
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder

WANTED, OTHER = a_reference(1), a_reference(2)


class World:
    """What one plugin sees of the world."""

    def __init__(self, lock: Path) -> None:
        self.disk = Disk()
        self.data, self.cdi = FakeFolder(self.disk), FakeFolder(self.disk)
        self.reader, self.source = FakeReader(), FakeSource()
        self.source.known.update(some_instances())
        self.source.discovered.set()
        self.lock = lock

    async def plugin(self) -> KubeletClaims:
        node = Node(NODE, BOOT, data=self.data, cdi_files=self.cdi, lock=ProcessLock(self.lock))
        plugin = KubeletClaims(
            node,
            self.reader,
            self.source,
            pools=frozenset({NODE}),
        )
        await plugin.recover()
        return plugin


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "lock")


async def test_every_claim_has_an_entry(world: World) -> None:
    world.reader.put(WANTED)
    nonsense = ClaimReference("", "", ClaimUid("../x"))
    nameless = ClaimReference("", "", ClaimUid(""))
    plugin = await world.plugin()

    answers = await plugin.prepare([WANTED, OTHER, nonsense, nameless, WANTED])

    assert answers == {
        WANTED.uid: prepared(WANTED),
        OTHER.uid: Failure(f"ResourceClaim {OTHER} does not exist"),
        "../x": Failure("ResourceClaim UID '../x' is not a UID"),
        "": Failure("ResourceClaim UID '' is not a UID"),
    }


async def test_unprepare_of_an_unknown_claim_succeeds(world: World) -> None:
    plugin = await world.plugin()

    assert await plugin.unprepare([WANTED]) == {WANTED.uid: None}


async def test_unprepare_called_twice_succeeds_twice(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])

    first = await plugin.unprepare([WANTED])
    second = await plugin.unprepare([WANTED])

    assert (first, second) == ({WANTED.uid: prepared(WANTED)}, {WANTED.uid: None})


@pytest.mark.parametrize("error", [ConnectionError("refused"), TimeoutError(), ValueError("?")])
async def test_granted_claim_is_answered_without_api_server_and_discovery(
    world: World, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_claims, "KNOWN_SECONDS", 0.01)
    world.reader.put(WANTED)
    await (await world.plugin()).prepare([WANTED])
    world.reader.error = error
    world.source.discovered.clear()
    plugin = await world.plugin()

    answers = await plugin.prepare([WANTED, OTHER])

    assert answers[WANTED.uid] == prepared(WANTED)
    assert answers[OTHER.uid] == Failure(
        f"the API server cannot be asked for ResourceClaim {OTHER}: {str(error) or 'TimeoutError'}"
    )


async def test_claim_that_was_replaced_is_refused_although_it_is_granted(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])
    replacement = a_reference(2, name=WANTED.name)
    world.reader.put(replacement)

    answers = await plugin.prepare([WANTED, replacement])

    assert answers[WANTED.uid] == Failure(
        f"ResourceClaim {WANTED} was replaced by one with UID {replacement.uid}"
    )
    assert answers[replacement.uid] == Failure(
        f"device node-a/loop-aaaaaa is still prepared for ResourceClaim {WANTED}"
    )


async def test_slow_api_server_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_claims, "API_SECONDS", 0.05)
    world.reader.put(WANTED)
    world.reader.delay_seconds = 60
    plugin = await world.plugin()

    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure(
            f"the API server cannot be asked for ResourceClaim {WANTED}: TimeoutError"
        )
    }


async def test_first_discovery_is_waited_for(world: World) -> None:
    world.reader.put(WANTED)
    world.source.discovered.clear()
    plugin = await world.plugin()

    answers = asyncio.create_task(plugin.prepare([WANTED]))
    await asyncio.sleep(0.05)
    assert not answers.done()
    world.source.discovered.set()

    assert await answers == {WANTED.uid: prepared(WANTED)}


async def test_discovery_that_does_not_end_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_claims, "INSTANCES_SECONDS", 0.05)
    world.reader.put(WANTED)
    world.source.discovered.clear()
    plugin = await world.plugin()

    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure("the devices of this node are not discovered yet")
    }


async def test_claim_is_answered_before_the_kubelet_hangs_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_calls, "CLAIM_SECONDS", 0.2)
    world.reader.put(WANTED)
    plugin = await world.plugin()
    other_process = ProcessLock(world.lock)

    async def entered(_: bool) -> None:
        """Nothing to read."""

    async with other_process.held(entered):
        answers = await plugin.prepare([WANTED])

    assert answers == {WANTED.uid: Failure(f"ResourceClaim {WANTED} was not served within 0 s")}
    assert await plugin.prepare([WANTED]) == {WANTED.uid: prepared(WANTED)}


async def test_a_folder_that_refuses_the_lock_is_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    world.lock.unlink(missing_ok=True)
    world.lock.mkdir()

    answers = await plugin.prepare([WANTED])

    why = f"[Errno 21] Is a directory: '{world.lock}'"
    assert answers == {WANTED.uid: Failure(f"the driver failed: {why}")}
    assert f"Claim {WANTED} failed: {why}" in caplog.text
    assert "Traceback" not in caplog.text


async def test_slow_api_server_keeps_no_other_process_waiting(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.put(OTHER, a_result("cam-bbbbbb"))
    world.source.known.update(some_instances(an_instance("cam-bbbbbb")))
    plugin, successor = await world.plugin(), await world.plugin()
    world.reader.delay_seconds = 60
    waiting = asyncio.create_task(plugin.prepare([WANTED]))
    await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    world.reader.delay_seconds = 0

    async with asyncio.timeout(5):
        assert isinstance((await successor.prepare([OTHER]))[OTHER.uid], PreparedClaim)
    waiting.cancel()
    await plugin.calls.finish(0)


async def test_process_that_unprepares_waits_for_the_one_that_prepares(world: World) -> None:
    world.reader.put(WANTED)
    plugin, other = await world.plugin(), await world.plugin()
    world.reader.delay_seconds = 0.1
    preparing = asyncio.create_task(plugin.prepare([WANTED]))
    await asyncio.sleep(0.02)

    assert await other.unprepare([WANTED]) == {WANTED.uid: prepared(WANTED)}
    assert preparing.done()
    assert world.cdi.files == {}


async def test_bug_is_one_claims_error_and_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_bug(found: Any, wanted: ClaimReference, pools: Any) -> Any:
        if wanted == OTHER:
            raise RuntimeError("a bug")
        return allocated_claim(found, wanted, pools)

    monkeypatch.setattr(kubelet_claims, "allocated_claim", with_a_bug)
    world.reader.put(WANTED)
    world.reader.put(OTHER)
    plugin = await world.plugin()

    answers = await plugin.prepare([WANTED, OTHER])

    assert answers == {
        WANTED.uid: prepared(WANTED),
        OTHER.uid: Failure("the driver failed, and its log says where: RuntimeError: a bug"),
    }
    assert f"Claim {OTHER} failed" in caplog.text


async def test_work_goes_on_when_the_kubelet_hangs_up(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.delay_seconds = 0.1
    plugin = await world.plugin()

    call = asyncio.create_task(plugin.prepare([WANTED]))
    await asyncio.sleep(0.02)
    call.cancel()
    await asyncio.wait([call])
    assert world.cdi.files == {}
    await plugin.calls.finish(5)

    assert len(world.cdi.files) == 1


async def test_work_that_does_not_end_is_cut_off_at_the_end(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.delay_seconds = 60
    plugin = await world.plugin()
    call = asyncio.create_task(plugin.prepare([WANTED]))
    await asyncio.sleep(0.02)

    async with asyncio.timeout(5):
        await plugin.calls.finish(0.05)
        await asyncio.wait([call])

    assert call.cancelled()


async def test_calls_for_one_claim_take_turns(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.delay_seconds = 0.02
    plugin = await world.plugin()

    answers = await asyncio.gather(
        plugin.prepare([WANTED]), plugin.unprepare([WANTED]), plugin.prepare([WANTED])
    )

    assert [a[WANTED.uid] for a in answers] == [prepared(WANTED)] * 3
    assert len(world.cdi.files) == 1


async def test_claims_are_looked_up_at_the_same_time(world: World) -> None:
    references = [world.reader.put(a_reference(n), a_result(f"cam-{n:06x}")) for n in range(50)]
    world.source.known.update(some_instances(*(an_instance(f"cam-{n:06x}") for n in range(50))))
    world.reader.delay_seconds = 0.1
    plugin = await world.plugin()

    async with asyncio.timeout(2):
        answers = await plugin.prepare(references)

    assert all(isinstance(answer, PreparedClaim) for answer in answers.values())


async def test_pools_may_change_while_serving(world: World) -> None:
    world.reader.put(WANTED, a_result("cam-aaaaaa", pool="onvif"))
    world.source.known.update(
        {
            ("onvif", device): i
            for (_, device), i in some_instances(an_instance("cam-aaaaaa")).items()
        }
    )
    plugin = await world.plugin()
    assert isinstance((await plugin.prepare([WANTED]))[WANTED.uid], Failure)

    plugin.pools = frozenset({NODE, "onvif"})

    assert isinstance((await plugin.prepare([WANTED]))[WANTED.uid], PreparedClaim)


async def test_properties_that_get_lost_are_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.reader.put(WANTED)
    world.source.known.update(some_instances(an_instance(properties={"NO WAY": "x"})))
    plugin = await world.plugin()

    with caplog.at_level(logging.WARNING):
        await plugin.prepare([WANTED])

    assert f"Claim {WANTED}: no environment variables: ['NO WAY']" in caplog.text


async def test_links_to_device_nodes_are_followed(world: World, tmp_path: Path) -> None:
    (tmp_path / "ttyUSB0").touch()
    (tmp_path / "by-id").symlink_to("ttyUSB0")
    world.reader.put(WANTED)
    specs = (
        DeviceSpec("/dev/modem", str(tmp_path / "by-id")),
        DeviceSpec("/dev/none", "/none/such"),
    )
    world.source.known.update(some_instances(an_instance(device_specs=specs)))
    plugin = await world.plugin()

    claim = (await plugin.prepare([WANTED]))[WANTED.uid]

    assert isinstance(claim, PreparedClaim)
    assert claim.devices[0].device_specs == (
        DeviceSpec("/dev/modem", str(tmp_path / "ttyUSB0")),
        DeviceSpec("/dev/none", "/none/such"),
    )


def nodes(world: World, reference: ClaimReference) -> list[str]:
    """The device nodes of the host that containers of a claim are given."""
    document = json.loads(world.cdi.files[cdi.file_name(reference.uid)])
    return [
        node["hostPath"]
        for device in document["devices"]
        for node in device["containerEdits"].get("deviceNodes", ())
    ]


def moved(path: str, name: str = "loop-aaaaaa", **fields: Any) -> Instance:
    return an_instance(name, device_specs=(DeviceSpec(path, path),), **fields)


async def test_second_pod_gets_the_device_where_it_is_now(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])

    world.source.known.update(some_instances(moved("/dev/b")))
    (again,) = (await plugin.prepare([WANTED])).values()

    assert isinstance(again, PreparedClaim)
    assert again.devices[0].paths == ("/dev/b",)
    assert nodes(world, WANTED) == ["/dev/b"]


async def test_restarted_container_gets_the_device_where_it_is_now(world: World) -> None:
    """The runtime reads the file without asking anybody."""
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])

    world.source.known.update(some_instances(moved("/dev/b")))
    await plugin.renew()

    assert nodes(world, WANTED) == ["/dev/b"]


async def test_two_devices_that_swap_their_paths_are_planned_anew(world: World) -> None:
    world.source.known.update(some_instances(moved("/dev/a"), moved("/dev/b", "loop-bbbbbb")))
    world.reader.put(WANTED)
    world.reader.put(OTHER, a_result("loop-bbbbbb"))
    plugin = await world.plugin()
    await plugin.prepare([WANTED, OTHER])

    world.source.known.update(some_instances(moved("/dev/b"), moved("/dev/a", "loop-bbbbbb")))
    await plugin.renew()

    assert (nodes(world, WANTED), nodes(world, OTHER)) == (["/dev/b"], ["/dev/a"])


async def test_device_that_is_away_is_in_no_file_until_it_is_back(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    first = await plugin.prepare([WANTED])

    world.source.known.clear()
    await plugin.renew()

    assert nodes(world, WANTED) == []
    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure("device node-a/loop-aaaaaa is offline")
    }
    world.source.known.update(some_instances())
    assert await plugin.prepare([WANTED]) == first
    assert nodes(world, WANTED) == ["/dev/loop-aaaaaa"]


async def test_device_that_moved_while_the_driver_was_down_is_looked_for_before_all_else(
    world: World,
) -> None:
    world.reader.put(WANTED)
    await (await world.plugin()).prepare([WANTED])

    world.source.known.update(some_instances(moved("/dev/b")))
    await world.plugin()

    assert nodes(world, WANTED) == ["/dev/b"]


@pytest.mark.parametrize("heard", [True, False])
async def test_not_heard_yet_is_not_gone(
    world: World, heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_claims, "KNOWN_SECONDS", 0.01)
    world.reader.put(WANTED)
    await (await world.plugin()).prepare([WANTED])

    world.source.known.clear()
    if heard:
        world.source.unheard = frozenset({ConfigurationName("loop")})
    else:
        world.source.discovered.clear()
    plugin = await world.plugin()

    assert nodes(world, WANTED) == ["/dev/loop-aaaaaa"]
    assert await plugin.prepare([WANTED]) == {WANTED.uid: prepared(WANTED)}


async def test_path_of_an_unheard_device_that_is_another_s_now_is_in_no_file(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])

    world.source.known.clear()
    world.source.known.update(some_instances(moved("/dev/loop-aaaaaa", "loop-bbbbbb")))
    world.source.unheard = frozenset({ConfigurationName("loop")})
    await plugin.renew()

    assert nodes(world, WANTED) == []
    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure(
            "device node-a/loop-aaaaaa was at /dev/loop-aaaaaa, where Instance loop-bbbbbb is now"
        )
    }


async def test_device_that_is_published_still_is_not_given_where_another_is(world: World) -> None:
    """Its Configuration was edited and is refused, so nobody looks for its devices."""
    world.reader.put(WANTED)
    world.source.known.update(some_instances(moved("/dev/a", online=True)))
    world.source.unreported = {"loop-aaaaaa"}
    world.source.known.update(some_instances(moved("/dev/a", "loop-bbbbbb")))
    world.source.unheard = frozenset({ConfigurationName("loop")})
    plugin = await world.plugin()

    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure(
            "device node-a/loop-aaaaaa was at /dev/a, where Instance loop-bbbbbb is now"
        )
    }
    assert world.cdi.files == {}


async def test_renewal_that_cannot_be_written_withdraws_the_file_and_is_tried_again(
    world: World,
) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])
    world.source.known.update(some_instances(moved("/dev/b")))

    world.disk.fail = lambda name, size: True
    with pytest.raises(OSError, match="No space left"):
        await plugin.renew()
    assert list(world.cdi.files) == [cdi.withheld_name(WANTED.uid)]
    assert isinstance((await plugin.prepare([WANTED]))[WANTED.uid], Failure)

    world.disk.fail = lambda name, size: False
    await plugin.renew()
    assert nodes(world, WANTED) == ["/dev/b"]


async def test_file_that_cannot_be_written_keeps_no_other_from_following_its_device(
    world: World,
) -> None:
    world.source.known.update(some_instances(moved("/dev/a"), moved("/dev/b", "loop-bbbbbb")))
    world.reader.put(WANTED)
    world.reader.put(OTHER, a_result("loop-bbbbbb"))
    plugin = await world.plugin()
    heard: list[Renewal] = []
    plugin.on_renewed(heard.extend)
    await plugin.prepare([WANTED, OTHER])
    world.source.known.update(some_instances(moved("/dev/c"), moved("/dev/d", "loop-bbbbbb")))

    world.disk.fail = lambda name, size: name == cdi.file_name(WANTED.uid)
    with pytest.raises(OSError, match="No space left"):
        await plugin.renew()
    assert nodes(world, OTHER) == ["/dev/d"]
    assert heard == []

    world.disk.fail = lambda name, size: False
    await plugin.renew()
    assert nodes(world, WANTED) == ["/dev/c"]
    assert len(heard) == 2


async def test_file_that_was_withdrawn_is_back_with_a_device_that_is_back(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])
    world.source.known.clear()
    world.disk.fail = lambda name, size: True
    with suppress(OSError):
        await plugin.renew()

    world.disk.fail = lambda name, size: False
    world.source.known.update(some_instances())
    await plugin.renew()

    assert nodes(world, WANTED) == ["/dev/loop-aaaaaa"]


async def test_claim_that_is_unprepared_while_it_is_planned_anew_leaves_no_file(
    world: World,
) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])
    world.source.known.update(some_instances(moved("/dev/b")))

    await asyncio.gather(plugin.renew(), plugin.unprepare([WANTED]))

    assert world.cdi.files == {}


async def test_listener_hears_once_what_changed(world: World) -> None:
    world.reader.put(WANTED)
    plugin = await world.plugin()
    heard: list[Renewal] = []
    plugin.on_renewed(heard.extend)
    (first,) = (await plugin.prepare([WANTED])).values()
    assert heard == []

    world.source.known.update(some_instances(moved("/dev/b")))
    await plugin.prepare([WANTED])
    await plugin.renew()

    assert [renewal.before for renewal in heard] == [first]


async def test_claim_that_was_allocated_anew_frees_its_old_device(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.source.known.update(some_instances(an_instance("loop-bbbbbb")))
    world.reader.put(WANTED)
    world.reader.put(OTHER)
    plugin = await world.plugin()
    await plugin.prepare([WANTED])
    world.reader.put(WANTED, a_result("loop-bbbbbb"))

    await plugin.prepare([WANTED])
    answers = await plugin.prepare([OTHER])

    assert isinstance(answers[OTHER.uid], PreparedClaim)
    assert f"Claim {WANTED} was allocated anew" in caplog.text


async def stale(claim: PreparedClaim) -> bool:
    return True


async def test_claim_that_is_gone_keeps_its_device_until_it_is_let_go(world: World) -> None:
    plugin = await world.plugin()
    world.reader.put(OTHER)
    await plugin.prepare([OTHER])
    world.reader.put(WANTED)
    del world.reader.stored[OTHER.name]

    refused = (await plugin.prepare([WANTED]))[WANTED.uid]
    assert await plugin.cleanup.unprepare_stale(OTHER.uid, stale) == prepared(OTHER)

    assert isinstance(refused, Failure)
    assert "is still prepared for ResourceClaim default/claim-2" in refused.sentence
    assert isinstance((await plugin.prepare([WANTED]))[WANTED.uid], PreparedClaim)
    assert list(world.cdi.files) == [cdi.file_name(WANTED.uid)]


async def test_nothing_new_is_prepared_while_it_is_not_known_where_that_is(world: World) -> None:
    world.reader.put(WANTED)
    world.reader.home_error = PermissionError("namespaces kube-system is forbidden")
    plugin = await world.plugin()

    assert await plugin.prepare([WANTED]) == {
        WANTED.uid: Failure(
            "the UIDs of this node and cluster are unknown: namespaces kube-system is forbidden"
        )
    }
    world.reader.home_error = None
    assert await plugin.prepare([WANTED]) == {WANTED.uid: prepared(WANTED)}


async def test_claims_of_an_older_process_are_planned_anew_by_the_newer_one(world: World) -> None:
    """Though it prepared nothing itself."""
    older, newer = await world.plugin(), await world.plugin()
    world.reader.put(WANTED)
    await older.prepare([WANTED])

    world.source.known.update(some_instances(moved("/dev/b")))
    await newer.renew()

    assert nodes(world, WANTED) == ["/dev/b"]
