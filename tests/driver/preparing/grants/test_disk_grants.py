"""Memory and the files of claims are one, whatever dies, stalls or fails in between."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from driver.api import ClaimUid
from driver.devices import DeviceSpec
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing.files import cdi, disk_rescue
from driver.preparing.files.checkpoint import NAME as CHECKPOINT
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.disk_rescue import NAME as RESCUED
from driver.preparing.files.prepared import ClaimReference, Home, PreparedClaim, PreparedClaims
from driver.preparing.grants import disk_grants
from driver.preparing.grants.claims import Failure, plan_prepare
from driver.preparing.grants.disk_grants import Node, Renew
from driver.preparing.grants.rival_claims import Renewal
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    HOME,
    a_reference,
    a_result,
    allocated,
    an_instance,
    prepared,
    records_in,
    some_instances,
)
from tests.driver.earlier_files import earlier_cdi_file, earlier_checkpoint, newer_cdi_file
from tests.fakes.disk import Disk, FakeFolder
from tests.fakes.killed import KilledError

WANTED, OTHER = a_reference(1), a_reference(2)
INSTANCES = some_instances(an_instance("loop-aaaaaa"), an_instance("loop-bbbbbb"))


class Machine:
    """A machine whose processes come and go, and whose disk stays."""

    def __init__(self, lock: Path) -> None:
        self.disk = Disk()
        self.data = FakeFolder(self.disk)
        self.cdi = FakeFolder(self.disk)
        self.lock = lock

    async def start(self, boot: str = BOOT) -> Node:
        node = self.process(boot)
        await node.recover()
        return node

    def process(self, boot: str = BOOT) -> Node:
        lock = ProcessLock(self.lock)
        node = Node(NODE, boot, data=self.data, cdi_files=self.cdi, lock=lock)
        node.home = HOME
        return node

    def records(self) -> PreparedClaims:
        return records_in(self.cdi.files)

    def assert_files_are_those_of(self, *claims: PreparedClaim) -> None:
        assert self.records() == {claim.reference.uid: claim for claim in claims}
        assert self.cdi.files == {cdi.file_name(c.reference.uid): cdi.dump(c) for c in claims}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "lock")


async def grant(node: Node, reference: ClaimReference, device: str = "") -> object:
    claim = allocated(reference, a_result(device or "loop-aaaaaa"))
    async with node.exclusively():
        return await node.grant(partial(plan_prepare, claim, INSTANCES, boot_id=node.boot_id))


async def release(node: Node, reference: ClaimReference) -> object:
    async with node.exclusively():
        return await node.release(reference.uid)


def a_grant(reference: ClaimReference, device: str = "loop-aaaaaa") -> PreparedClaim:
    return prepared(reference, a_result(device), instances=INSTANCES)


FILE = cdi.file_name(WANTED.uid)
WITHHELD = cdi.withheld_name(WANTED.uid)
ASIDE = f"{RESCUED}.unreadable-{BOOT}"


async def test_a_grant_is_one_write_and_a_release_one_removal(machine: Machine) -> None:
    node = await machine.start()

    assert await grant(node, WANTED) == a_grant(WANTED)
    assert machine.disk.steps == [f"write {FILE}", f"wrote {FILE}"]
    machine.assert_files_are_those_of(a_grant(WANTED))

    machine.disk.steps.clear()
    assert await release(node, WANTED) == a_grant(WANTED)
    assert machine.disk.steps == [f"remove {FILE}", f"removed {FILE}"]
    machine.assert_files_are_those_of()


async def test_record_says_where_and_when_its_claim_was_prepared(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)

    (device,) = (
        device
        for device in json.loads(machine.cdi.files[FILE])["devices"]
        if device["name"] == f"{WANTED.uid}_record"
    )
    record = json.loads(device["containerEdits"]["env"][0].removeprefix("MOORAGE_CLAIM="))

    assert (record["version"], record["bootID"]) == (1, BOOT)
    assert (record["nodeUID"], record["clusterUID"]) == (HOME.node, HOME.cluster)
    assert (record["namespace"], record["name"]) == ("default", "claim-1")


async def test_nothing_new_is_granted_before_it_is_known_where_that_is(machine: Machine) -> None:
    await grant(await machine.start(), OTHER, "loop-bbbbbb")
    node = await machine.start()
    node.home = "nodes is forbidden"

    assert await grant(node, WANTED) == Failure(
        "the UIDs of this node and cluster are unknown: nodes is forbidden"
    )
    assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")


async def test_grant_whose_file_is_right_writes_nothing(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)
    machine.disk.steps.clear()

    node = await machine.start()
    assert await grant(node, WANTED) == a_grant(WANTED)
    assert await grant(node, WANTED) == a_grant(WANTED)

    assert machine.disk.steps == []


async def test_start_writes_no_file_that_is_right(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    device = an_instance(properties={"b": "said first", "a": "said last"})
    claim = allocated(WANTED, a_result())
    node = await machine.start()
    async with node.exclusively():
        await node.grant(partial(plan_prepare, claim, some_instances(device), boot_id=BOOT))
    machine.disk.steps.clear()

    await machine.start()

    assert machine.disk.steps == []
    assert caplog.text == ""


async def test_what_is_of_an_earlier_boot_holds_nothing(machine: Machine) -> None:
    """The folder may be one that outlives a boot."""
    await grant(await machine.start(), WANTED)
    machine.cdi.files["nvidia.yaml"] = b"theirs"

    node = await machine.start("boot-2")

    assert list(machine.cdi.files) == ["nvidia.yaml"]
    again = replace(a_grant(OTHER), boot_id="boot-2")
    assert await grant(node, OTHER) == again


@pytest.mark.parametrize("text", [None, b"{}"])
async def test_file_that_somebody_removed_or_replaced_is_written_again(
    machine: Machine, text: bytes | None
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    if text is None:
        del machine.cdi.files[FILE]
    else:
        machine.cdi.write(FILE, text)

    await grant(node, WANTED)

    machine.assert_files_are_those_of(a_grant(WANTED))


class Stall:
    """A disk whose next write does not end until it is told to."""

    def __init__(self, machine: Machine) -> None:
        self._begun, self._on = threading.Event(), threading.Event()
        machine.disk.fail = self._wait

    def _wait(self, name: str, size: int) -> bool:
        self._begun.set()
        return not self._on.wait(30)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self._begun.wait, 30)

    def end(self) -> None:
        self._on.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every disk counts as slow."""
    monkeypatch.setattr(disk_grants, "SLOW_SECONDS", -1)


@pytest.mark.usefixtures("slow")
async def test_slow_disk_keeps_nobody_else_waiting(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    stall = Stall(machine)

    waiting = asyncio.create_task(grant(node, OTHER, "loop-bbbbbb"))
    await stall.begun()
    assert not waiting.done()
    stall.end()

    assert await waiting == a_grant(OTHER, "loop-bbbbbb")


@pytest.mark.usefixtures("slow")
async def test_lock_is_held_until_a_cancelled_write_has_ended(machine: Machine) -> None:
    """Or else the successor would grant the device, and the late write come after it."""
    old, new = await machine.start(), await machine.start()
    await grant(old, a_reference(9), "loop-bbbbbb")
    stall = Stall(machine)
    cancelled = asyncio.create_task(grant(old, WANTED))
    await stall.begun()

    cancelled.cancel()
    successor = asyncio.create_task(grant(new, OTHER))
    await asyncio.wait([cancelled, successor], timeout=0.2)
    assert not cancelled.done()
    assert not successor.done()
    stall.end()

    assert isinstance(await successor, Failure)
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert machine.records().keys() == {WANTED.uid, a_reference(9).uid}
    assert old.prepared.keys() == new.prepared.keys() == machine.records().keys()


async def test_release_of_what_is_not_granted_is_fine(machine: Machine) -> None:
    node = await machine.start()

    assert await release(node, WANTED) is None
    assert machine.disk.steps == []


async def test_plans_at_one_time_see_each_other(machine: Machine) -> None:
    node = await machine.start()

    granted, refused = await asyncio.gather(grant(node, WANTED), grant(node, OTHER))

    assert granted == a_grant(WANTED)
    assert isinstance(refused, Failure)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_plan_that_fails_fails_alone(machine: Machine) -> None:
    node = await machine.start()

    def broken(claims: PreparedClaims) -> Failure:
        raise LookupError("broken")

    async with node.exclusively():
        failed, granted = await asyncio.gather(
            node.grant(broken), grant(node, WANTED), return_exceptions=True
        )

    assert isinstance(failed, LookupError)
    assert granted == a_grant(WANTED)


async def test_full_disk_fails_one_claim_and_loses_none(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, OTHER, "loop-bbbbbb")
    machine.disk.fail = lambda name, size: True

    refused, released = await asyncio.gather(grant(node, WANTED), release(node, OTHER))

    assert refused == Failure(
        "the node cannot record what it grants: [Errno 28] No space left on device"
    )
    assert released == a_grant(OTHER, "loop-bbbbbb")
    machine.assert_files_are_those_of()

    machine.disk.fail = lambda name, size: False
    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_release_that_fails_is_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await machine.start()
    await grant(node, WANTED)

    def refuse(name: str) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(machine.cdi, "remove", refuse)
        assert isinstance(await release(node, WANTED), Failure)
    assert node.prepared == machine.records() == {WANTED.uid: a_grant(WANTED)}

    assert await release(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of()


@pytest.mark.parametrize("step", range(2))
async def test_killed_while_granting(machine: Machine, step: int) -> None:
    node = await machine.start()
    machine.disk.kill_at = step
    with pytest.raises(KilledError):
        await grant(node, WANTED)
    machine.disk.kill_at = None

    node = await machine.start()

    machine.assert_files_are_those_of(*([a_grant(WANTED)] if step else []))
    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


@pytest.mark.parametrize("step", range(2))
async def test_killed_while_releasing(machine: Machine, step: int) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.disk.kill_at = step
    with pytest.raises(KilledError):
        await release(node, WANTED)
    machine.disk.kill_at = None

    node = await machine.start()

    machine.assert_files_are_those_of(*([] if step else [a_grant(WANTED)]))
    await release(node, WANTED)
    machine.assert_files_are_those_of()


@pytest.mark.parametrize("by_hand", [True, False])
async def test_nothing_is_granted_while_the_devices_of_a_claim_are_not_known(
    machine: Machine, by_hand: bool
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    machine.cdi.files[FILE] = b"{"

    for _ in range(2):  # it is not known any better after another start
        node = await machine.start()

        refused = await grant(node, a_reference(3))
        assert isinstance(refused, Failure)
        assert f"{WANTED.uid} in CDI file {FILE} is unreadable" in refused.sentence
        assert machine.cdi.files[FILE] == b"{"
        assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")
    if by_hand:
        machine.cdi.remove(FILE)
    else:
        await release(node, WANTED)
    assert await grant(node, a_reference(3)) == a_grant(a_reference(3))


async def test_lost_claim_that_is_granted_again_is_known_again(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)
    machine.cdi.files[FILE] = b"{"
    node = await machine.start()

    assert await grant(node, WANTED) == a_grant(WANTED)

    assert not node.doubtful
    machine.assert_files_are_those_of(a_grant(WANTED))


@pytest.mark.parametrize("fields", [{}, {"devices": {"by": "name"}}])
async def test_record_of_a_newer_driver_is_left_alone(
    machine: Machine, fields: dict[str, object]
) -> None:
    await grant(await machine.start(), OTHER, "loop-bbbbbb")
    newer = machine.cdi.files[FILE] = newer_cdi_file(a_grant(WANTED), **fields)

    node = await machine.start()
    refused = await grant(node, a_reference(3), "loop-bbbbbb")
    kept = await release(node, WANTED)
    asked_anew = await grant(node, WANTED, "loop-bbbbbb")
    async with node.exclusively():
        await node.renew(lambda claims: {})

    for failure in (refused, kept, asked_anew):
        assert isinstance(failure, Failure)
    assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")
    if not fields:
        assert await grant(node, WANTED) == replace(a_grant(WANTED), version=2)
    assert machine.cdi.files[FILE] == newer
    assert await release(node, OTHER) == a_grant(OTHER, "loop-bbbbbb")


async def test_record_of_a_newer_driver_and_an_earlier_boot_is_in_nobodys_way(
    machine: Machine,
) -> None:
    newer = machine.cdi.files[FILE] = newer_cdi_file(a_grant(WANTED))

    node = await machine.start("boot-2")

    assert machine.cdi.files[FILE] == newer
    assert isinstance(await grant(node, OTHER), PreparedClaim)


async def test_overlapping_processes_know_what_the_other_did(machine: Machine) -> None:
    old, new = await machine.start(), await machine.start()

    assert await grant(new, WANTED) == a_grant(WANTED)
    assert isinstance(await grant(old, OTHER), Failure)
    assert await release(old, WANTED) == a_grant(WANTED)
    assert isinstance(await grant(new, OTHER), Failure)
    assert await settled(new, WANTED, is_in_use=False)
    assert await grant(new, OTHER) == a_grant(OTHER)
    assert await grant(old, OTHER) == a_grant(OTHER)
    machine.assert_files_are_those_of(a_grant(OTHER))


async def test_write_that_is_killed_leaves_nobody_waiting(machine: Machine) -> None:
    node = await machine.start()
    machine.disk.kill_at = 0

    outcomes = await asyncio.gather(
        grant(node, WANTED), grant(node, OTHER, "loop-bbbbbb"), return_exceptions=True
    )

    assert any(isinstance(o, KilledError) for o in outcomes)
    machine.disk.kill_at = None
    async with asyncio.timeout(5):
        assert await grant(node, WANTED) == a_grant(WANTED)


def renewed(path: str) -> Renew:
    def plan(claims: PreparedClaims) -> dict[ClaimUid, Renewal]:
        spec = DeviceSpec("/dev/disk", path, "rw")
        return {
            uid: Renewal(claim, replace(claim, devices=devices))
            for uid, claim in claims.items()
            if (devices := (replace(claim.devices[0], device_specs=(spec,)),)) != claim.devices
        }

    return plan


async def renew(node: Node, path: str) -> None:
    async with node.exclusively():
        await node.renew(renewed(path))


async def test_file_that_is_no_longer_right_keeps_its_record_on_a_full_disk(
    machine: Machine,
) -> None:
    """No runtime reads it meanwhile, whoever starts in between."""
    node = await machine.start()
    await grant(node, WANTED)
    machine.disk.fail = lambda name, size: True

    with pytest.raises(OSError, match="No space"):
        await renew(node, "/dev/elsewhere")
    assert list(machine.cdi.files) == [WITHHELD]
    node = await machine.start()
    assert list(machine.cdi.files) == [WITHHELD]
    assert isinstance(await grant(node, OTHER), Failure)
    with pytest.raises(OSError, match="No space"):
        await renew(node, "/dev/elsewhere")

    machine.disk.fail = lambda name, size: False
    await renew(node, "/dev/elsewhere")
    assert list(machine.cdi.files) == [FILE]
    assert node.is_up_to_date
    await release(node, WANTED)
    assert machine.cdi.files == {}


async def test_killed_between_file_and_withheld_one_the_file_counts(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    before = machine.cdi.files[FILE]
    await renew(node, "/dev/elsewhere")
    machine.cdi.files[WITHHELD] = before

    node = await machine.start()
    assert node.prepared[WANTED.uid].devices[0].paths == ("/dev/elsewhere",)
    await renew(node, "/dev/elsewhere")

    assert list(machine.cdi.files) == [FILE]


def as_earlier(machine: Machine, *claims: PreparedClaim) -> None:
    """What the driver before this one left."""
    unknown = [replace(claim, home=Home()) for claim in claims]
    machine.data.write(CHECKPOINT, earlier_checkpoint(unknown))
    for claim in unknown:
        machine.cdi.write(cdi.file_name(claim.reference.uid), earlier_cdi_file(claim))


async def test_checkpoint_of_the_earlier_driver_is_taken_over_and_gone(machine: Machine) -> None:
    as_earlier(machine, a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))
    del machine.cdi.files[FILE]  # as on a disk that was full
    for name in (f"{CHECKPOINT}.corrupt-0", f".{CHECKPOINT}.tmp"):
        machine.data.files[name] = b"secrets"

    node = await machine.start()

    assert machine.data.files == {}
    taken = replace(a_grant(WANTED), home=Home())
    machine.assert_files_are_those_of(taken, replace(a_grant(OTHER, "loop-bbbbbb"), home=Home()))
    assert await grant(node, WANTED) == taken
    assert isinstance(await grant(node, a_reference(3)), Failure)


async def test_what_the_earlier_driver_had_of_an_earlier_boot_holds_nothing(
    machine: Machine,
) -> None:
    as_earlier(machine, a_grant(WANTED))
    machine.cdi.files.clear()  # as /run is after a boot

    node = await machine.start("boot-2")

    assert machine.data.files == machine.cdi.files == {}
    assert isinstance(await grant(node, OTHER), PreparedClaim)


@pytest.mark.parametrize("damaged", [b"", b"{}", b"{"])
async def test_unreadable_checkpoint_of_the_earlier_driver_leaves_its_cdi_files(
    machine: Machine, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    as_earlier(machine, a_grant(WANTED))
    machine.data.write(CHECKPOINT, damaged)

    await machine.start()

    assert machine.data.files == {}
    assert "The earlier driver's checkpoint is unreadable: it is no checkpoint" in caplog.text
    machine.assert_files_are_those_of(replace(a_grant(WANTED), home=Home()))


async def test_take_over_that_is_killed_or_finds_no_room_is_done_again(machine: Machine) -> None:
    for step in range(6):
        machine.cdi.files.clear()
        as_earlier(machine, a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))
        machine.cdi.files.clear()
        machine.disk.kill_at = step
        with suppress(KilledError):
            await machine.start()
        machine.disk.kill_at = None

        machine.disk.fail = lambda name, size: name == FILE
        node = await machine.start()
        assert isinstance(await grant(node, a_reference(3)), Failure)
        machine.disk.fail = lambda name, size: False
        node = await machine.start()

        assert node.prepared.keys() == {WANTED.uid, OTHER.uid}
        assert machine.records() == node.prepared
        assert machine.data.files == {}


async def test_earlier_driver_that_serves_still_sees_what_this_one_grants(
    machine: Machine,
) -> None:
    """It looks whether its checkpoint is the one it knows, and else reads the CDI files."""
    as_earlier(machine, a_grant(WANTED))
    node = await machine.start()
    await release(node, WANTED)

    # What it knew, with what the files say; and what it granted itself.
    as_earlier(machine, a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))
    machine.cdi.remove(FILE)
    third = await grant(node, a_reference(3))

    assert third == a_grant(a_reference(3))
    assert CHECKPOINT not in machine.data.files
    assert node.prepared.keys() == {OTHER.uid, a_reference(3).uid}


async def looked_at(node: Node) -> None:
    """As the driver does every ten seconds."""
    async with node.exclusively():
        await node.renew(lambda claims: {})


async def settled(node: Node, reference: ClaimReference, *, is_in_use: bool = True) -> bool:
    """As when the API server has said whether a pod has the claim."""
    async with node.exclusively():
        return await node.settle(reference.uid, is_in_use=is_in_use)


async def test_a_file_that_somebody_removed_is_written_again_if_its_claim_is_in_use(
    machine: Machine,
) -> None:
    """Nothing is given twice meanwhile, and nothing but its claim's end releases the device."""
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")

    del machine.cdi.files[FILE]
    await looked_at(node)
    refused = await grant(node, a_reference(3))
    assert isinstance(refused, Failure)
    assert "is still prepared for" in refused.sentence
    assert node.lost == {WANTED.uid: a_grant(WANTED)}
    machine.assert_files_are_those_of(a_grant(OTHER, "loop-bbbbbb"))

    assert await settled(node, WANTED)
    assert not await settled(node, WANTED, is_in_use=False)
    machine.assert_files_are_those_of(a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))
    assert (machine.data.files, dict(node.lost)) == ({}, {})
    machine.disk.steps.clear()
    await looked_at(node)
    assert machine.disk.steps == []


async def test_a_lost_claim_outlives_its_driver(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    del machine.cdi.files[FILE]
    await looked_at(node)

    node = await machine.start()

    assert (dict(node.lost), machine.cdi.files) == ({WANTED.uid: a_grant(WANTED)}, {})
    assert await settled(node, WANTED, is_in_use=False)
    assert isinstance(await grant(node, OTHER), PreparedClaim)
    assert machine.data.files == {}


async def test_a_lost_claim_whose_device_moves_is_written_as_it_is_by_then(
    machine: Machine,
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    del machine.cdi.files[FILE]
    await looked_at(node)

    await renew(node, "/dev/elsewhere")
    assert machine.cdi.files == {}
    await settled(node, WANTED)

    assert machine.records()[WANTED.uid].devices[0].paths == ("/dev/elsewhere",)


async def test_a_file_that_somebody_removed_is_written_by_the_next_prepare(
    machine: Machine,
) -> None:
    node = await machine.start()
    await grant(node, WANTED)

    del machine.cdi.files[FILE]

    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_a_claim_that_ends_without_its_file_stays_released(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)

    del machine.cdi.files[FILE]
    assert await release(node, WANTED) == a_grant(WANTED)
    await looked_at(node)

    machine.assert_files_are_those_of()
    assert isinstance(await grant(node, OTHER), PreparedClaim)


async def test_a_claim_that_another_driver_released_is_lost_until_it_is_forgotten(
    machine: Machine,
) -> None:
    older, newer = await machine.start(), machine.process()
    await grant(older, WANTED)
    await newer.recover()
    await release(newer, WANTED)

    await looked_at(older)
    assert (list(older.prepared), machine.cdi.files) == ([WANTED.uid], {})
    assert isinstance(await grant(older, OTHER), Failure)
    await looked_at(newer)
    assert (list(newer.prepared), list(older.lost)) == ([], [WANTED.uid])
    assert await settled(older, WANTED, is_in_use=False)

    for node in (older, newer):
        assert await grant(node, OTHER) == a_grant(OTHER)
    assert machine.data.files == {}


async def test_while_there_is_a_record_of_which_not_all_is_known_the_others_are_kept(
    machine: Machine,
) -> None:
    """The unreadable one is forgotten with its file, the other is not."""
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files[cdi.file_name(OTHER.uid)] = b"{"
    node = await machine.start()
    assert list(node.doubtful) == [OTHER.uid]

    machine.cdi.files.clear()
    assert isinstance(await grant(node, a_reference(3), "loop-bbbbbb"), PreparedClaim)

    assert node.doubtful == {}
    assert isinstance(await grant(node, a_reference(4)), Failure)
    assert list(node.lost) == [WANTED.uid]


async def test_while_the_folder_is_gone_nothing_is_granted_and_what_is_prepared_outlives_the_driver(
    machine: Machine,
) -> None:
    """A pod has the removed folder mounted until its end; the next pod has a new one."""
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    assert node.folder_problem == ""

    machine.cdi.files.clear()
    machine.cdi.trouble = "/cdi was removed on the node"
    for _ in range(2):
        await looked_at(node)
    assert node.folder_problem == "/cdi was removed on the node"
    assert isinstance(await grant(node, a_reference(3)), Failure)
    assert await release(node, OTHER) == a_grant(OTHER, "loop-bbbbbb")

    still = await machine.start()
    assert still.prepared == {WANTED.uid: a_grant(WANTED)}
    machine.cdi.trouble = ""
    assert list(machine.process().peek()) == [a_grant(WANTED)]
    node = await machine.start()
    assert isinstance(await grant(node, a_reference(3)), Failure)
    await settled(node, WANTED)

    machine.assert_files_are_those_of(a_grant(WANTED))
    assert machine.data.files == {}
    assert isinstance(await grant(node, a_reference(3)), Failure)
    await looked_at(still)
    assert still.folder_problem == ""


async def test_a_folder_that_is_there_again_has_all_files_again(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files.clear()
    machine.cdi.trouble = "/cdi is read-only"
    await looked_at(node)
    with pytest.raises(OSError, match="No such file"):
        await settled(node, WANTED)

    machine.cdi.trouble = ""
    await settled(node, WANTED)

    assert node.folder_problem == ""
    machine.assert_files_are_those_of(a_grant(WANTED))
    assert machine.data.files == {}


async def test_a_rescued_record_of_an_earlier_boot_holds_nothing(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files.clear()
    machine.cdi.trouble = "/cdi was removed on the node"
    await looked_at(node)
    machine.cdi.trouble = ""

    node = await machine.start("boot-2")

    assert (dict(node.prepared), machine.cdi.files, machine.data.files) == ({}, {}, {})


async def test_a_write_that_failed_is_told_until_one_does_not(machine: Machine) -> None:
    node = await machine.start()
    machine.disk.fail = lambda name, size: True
    assert isinstance(await grant(node, WANTED), Failure)
    assert "No space left" in node.folder_problem

    machine.disk.fail = lambda name, size: False
    assert isinstance(await grant(node, WANTED), PreparedClaim)

    assert node.folder_problem == ""


async def test_a_driver_that_only_looked_released_nothing(machine: Machine) -> None:
    """Absent files tell no release: each of the two drivers keeps what it knows."""
    ours, theirs = await machine.start(), machine.process()
    await grant(ours, WANTED)
    await theirs.recover()

    machine.cdi.files.clear()
    await looked_at(theirs)
    await looked_at(ours)

    for node in (ours, theirs):
        assert isinstance(await grant(node, OTHER), Failure)
    assert await settled(theirs, WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))
    await looked_at(ours)
    assert (dict(ours.lost), machine.data.files) == ({}, {})


async def test_a_driver_that_starts_without_files_takes_none_from_the_one_before(
    machine: Machine,
) -> None:
    older = await machine.start()
    await grant(older, WANTED)

    machine.cdi.files.clear()
    newer = await machine.start()
    await looked_at(older)

    assert isinstance(await grant(newer, OTHER), Failure)
    assert list(newer.lost) == list(older.lost) == [WANTED.uid]


async def test_a_release_that_is_killed_holds_no_device(machine: Machine) -> None:
    ours, theirs = await machine.start(), await machine.start()
    await grant(ours, WANTED)
    await looked_at(theirs)
    machine.disk.kill_at = 1  # the file is removed, and nothing done after that
    with pytest.raises(KilledError):
        await release(ours, WANTED)
    machine.disk.kill_at = None

    await looked_at(theirs)
    assert await settled(theirs, WANTED, is_in_use=False)

    assert (dict(theirs.prepared), machine.cdi.files) == ({}, {})


async def test_a_driver_of_an_earlier_version_finds_no_file_of_what_it_released(
    machine: Machine,
) -> None:
    """It believes each file. That it grants the device again tells that the claim has ended."""
    ours, earlier = await machine.start(), await machine.start()
    await grant(ours, WANTED)

    async with earlier.exclusively():
        machine.cdi.remove(FILE)
    await looked_at(ours)
    assert (list(ours.prepared), machine.cdi.files) == ([WANTED.uid], {})

    async with earlier.exclusively():
        machine.cdi.write(cdi.file_name(OTHER.uid), cdi.dump(a_grant(OTHER)))
    await looked_at(ours)
    machine.assert_files_are_those_of(a_grant(OTHER))
    assert (list(ours.prepared), machine.data.files) == ([OTHER.uid], {})


async def test_what_a_glance_saw_and_another_driver_released_is_not_prepared(
    machine: Machine,
) -> None:
    """An update: the driver before this one serves until this one has started."""
    earlier, ours = await machine.start(), machine.process()
    await grant(earlier, WANTED)
    assert list(ours.peek()) == [a_grant(WANTED)]
    async with earlier.exclusively():
        machine.cdi.remove(FILE)

    await ours.recover()

    assert (dict(ours.prepared), machine.cdi.files) == ({}, {})
    assert isinstance(await grant(ours, OTHER), PreparedClaim)


async def test_a_release_that_the_rescue_has_no_room_for_is_not_told_as_done(
    machine: Machine,
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    await without_folder(machine, node)

    machine.disk.fail = lambda name, size: name == RESCUED
    for _ in range(2):
        assert isinstance(await release(node, OTHER), Failure)
    assert OTHER.uid in node.prepared

    machine.disk.fail = lambda name, size: False
    assert await release(node, OTHER) == a_grant(OTHER, "loop-bbbbbb")
    machine.cdi.trouble = ""
    assert (await machine.start()).prepared == {WANTED.uid: a_grant(WANTED)}


async def without_folder(machine: Machine, node: Node) -> None:
    machine.cdi.files.clear()
    machine.cdi.trouble = "/cdi was removed on the node"
    await looked_at(node)


async def test_a_rescued_claim_whose_device_an_older_driver_gave_away_has_ended(
    machine: Machine,
) -> None:
    """A driver of before there were rescued records ran in between, and left them alone."""
    node = await machine.start()
    await grant(node, WANTED)
    await without_folder(machine, node)
    machine.cdi.trouble = ""
    machine.cdi.write(cdi.file_name(OTHER.uid), cdi.dump(a_grant(OTHER)))

    newer = await machine.start()

    assert newer.prepared == {OTHER.uid: a_grant(OTHER)}
    assert machine.data.files == {}
    machine.assert_files_are_those_of(a_grant(OTHER))


async def test_what_another_driver_rescues_is_known_to_one_that_runs_already(
    machine: Machine,
) -> None:
    """That one never read its CDI file, which was written and removed in between."""
    older, newer = await machine.start(), await machine.start()
    await grant(older, WANTED)
    await without_folder(machine, older)
    machine.cdi.trouble = ""

    assert isinstance(await grant(newer, OTHER), Failure)
    assert newer.lost == {WANTED.uid: a_grant(WANTED)}
    assert await settled(newer, WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))
    assert machine.data.files == {}


async def test_what_this_driver_let_go_it_does_not_adopt_from_another(machine: Machine) -> None:
    """Or two drivers would hold a claim for each other that has ended."""
    older, newer = await machine.start(), await machine.start()
    await grant(older, WANTED)
    del machine.cdi.files[FILE]
    await looked_at(older)
    await looked_at(newer)
    assert await settled(newer, WANTED, is_in_use=False)

    await looked_at(older)
    await looked_at(newer)

    assert list(older.lost) == [WANTED.uid]
    assert newer.lost == {}


async def test_what_this_driver_released_it_does_not_adopt_from_another(machine: Machine) -> None:
    """In an update: the other one knew the claim, and takes its file for one that was removed."""
    older, newer = await machine.start(), machine.process()
    await grant(older, WANTED)
    await newer.recover()
    assert await release(newer, WANTED) == a_grant(WANTED)

    await looked_at(older)
    assert [entry["uid"] for entry in rescued(machine)] == [WANTED.uid]
    await looked_at(newer)

    assert list(older.lost) == [WANTED.uid]
    assert (dict(newer.prepared), machine.data.files) == ({}, {})
    assert await grant(newer, OTHER) == a_grant(OTHER)
    await looked_at(older)
    assert older.prepared == {OTHER.uid: a_grant(OTHER)}, "its device is another's by now"


async def test_a_claim_that_comes_back_after_its_release_is_rescued_again(
    machine: Machine,
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await release(node, WANTED)
    await grant(node, WANTED)
    await without_folder(machine, node)
    await looked_at(node)

    assert [entry["uid"] for entry in rescued(machine)] == [WANTED.uid]
    machine.cdi.trouble = ""
    assert (await machine.start()).lost == {WANTED.uid: a_grant(WANTED)}


async def test_only_the_latest_releases_are_remembered(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver runs for months, and another one looks at the files every ten seconds."""
    monkeypatch.setattr(disk_rescue, "RELEASES", 1)
    older, newer = await machine.start(), machine.process()
    await grant(older, WANTED)
    await grant(older, OTHER, "loop-bbbbbb")
    await newer.recover()
    await release(newer, WANTED)
    await release(newer, OTHER)

    await looked_at(older)
    await looked_at(newer)

    assert list(newer.lost) == [WANTED.uid]


def rescued(machine: Machine) -> list[dict[str, object]]:
    claims: list[dict[str, object]] = json.loads(machine.data.files[RESCUED])["claims"]
    return claims


async def test_nothing_new_is_granted_before_rescued_records_are_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    del machine.cdi.files[FILE]
    await looked_at(node)

    read = machine.data.read

    def refuse(name: str) -> bytes | None:
        if name == RESCUED:
            raise OSError(5, "Input/output error")
        return read(name)

    with monkeypatch.context() as patched:
        patched.setattr(machine.data, "read", refuse)
        node = await machine.start()
        refused = await grant(node, a_reference(3))
        assert isinstance(refused, Failure)
        assert f"{RESCUED} cannot be read: [Errno 5]" in refused.sentence
        assert node.rescue_problem in refused.sentence
        assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")
        with suppress(OSError):
            await looked_at(node)

    refused = await grant(node, a_reference(3))
    assert isinstance(refused, Failure)
    assert "is still prepared for" in refused.sentence
    assert (node.rescue_problem, list(node.lost)) == ("", [WANTED.uid])


def newer_entry(entry: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in {**entry, "version": 2}.items() if name != "devices"}


def damaged_entry(entry: dict[str, object]) -> dict[str, object]:
    return {**entry, "devices": None}


@pytest.mark.parametrize("spoiled", [newer_entry, damaged_entry])
async def test_a_rescued_entry_in_doubt_stays_and_takes_none_with_it(
    machine: Machine, spoiled: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    await without_folder(machine, node)
    machine.cdi.trouble = ""
    ours, others = json.loads(machine.data.files[RESCUED])["claims"]
    doubtful = spoiled(ours)
    machine.data.write(RESCUED, json.dumps({"claims": [doubtful, 7, others]}).encode())

    for _ in range(2):
        node = await machine.start()
        await settled(node, OTHER)
        await looked_at(node)

        assert list(node.doubtful) == [WANTED.uid]
        assert json.loads(machine.data.files[RESCUED]) == {"claims": [7, doubtful]}
        machine.assert_files_are_those_of(a_grant(OTHER, "loop-bbbbbb"))
        refused = await grant(node, a_reference(3))
        assert isinstance(refused, Failure)
        assert f"{WANTED.uid} in {RESCUED} is " in refused.sentence


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"claims": {}}'])
async def test_nothing_new_is_granted_while_an_unreadable_rescue_of_this_boot_is_there(
    machine: Machine, text: bytes
) -> None:
    """It may name any claim. What is known is kept up, and the file stays for people to read."""
    node = await machine.start()
    await grant(node, OTHER, "loop-bbbbbb")
    machine.data.write(RESCUED, text)
    assert list(machine.process().peek()) == [a_grant(OTHER, "loop-bbbbbb")]
    assert machine.data.files == {RESCUED: text}

    for _ in range(2):
        node = await machine.start()
        refused = await grant(node, WANTED)
        assert isinstance(refused, Failure)
        assert f"was renamed to {ASIDE}" in refused.sentence
        assert node.rescue_problem in refused.sentence
        assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")
        assert machine.data.files == {ASIDE: text}

    machine.data.remove(ASIDE)
    assert isinstance(await grant(node, WANTED), PreparedClaim)
    assert node.rescue_problem == ""


async def test_an_unreadable_rescue_of_an_earlier_boot_is_in_no_claims_way(
    machine: Machine,
) -> None:
    machine.data.write(RESCUED, b"{")
    await machine.start()

    node = await machine.start("boot-2")

    assert node.rescue_problem == ""
    assert isinstance(await grant(node, WANTED), PreparedClaim)


async def test_only_a_write_of_a_cdi_file_tells_that_one_can_be_written(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, OTHER, "loop-bbbbbb")
    machine.disk.fail = lambda name, size: True
    assert isinstance(await grant(node, WANTED), Failure)

    assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")

    assert "No space left" in node.folder_problem


async def test_metadata_that_cannot_be_written_speaks_not_against_the_cdi_folder(
    machine: Machine, tmp_path: Path
) -> None:
    node = await machine.start()
    (tmp_path / "file").touch()
    node.files.metadata = MetadataFiles(tmp_path / "file" / "metadata")
    claim = replace(allocated(WANTED, a_result("loop-aaaaaa")), pod_claim="")

    async with node.exclusively():
        refused = await node.grant(partial(plan_prepare, claim, INSTANCES, boot_id=BOOT))

    assert isinstance(refused, Failure)
    assert "Not a directory" in node.metadata_problem
    assert node.folder_problem == ""

    (tmp_path / "file").unlink()
    await looked_at(node)
    assert node.metadata_problem == ""
