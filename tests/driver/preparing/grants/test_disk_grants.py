"""Memory, checkpoint and CDI files are one, whatever dies or fails in between."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from driver.plumbing.disk import ProcessLock
from driver.preparing.files import cdi, checkpoint, disk_checkpoint
from driver.preparing.files.disk_checkpoint import NAME as CHECKPOINT
from driver.preparing.files.prepared import ClaimReference, PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import Failure, plan_prepare
from driver.preparing.grants.disk_grants import Node
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_reference,
    a_result,
    allocated,
    an_instance,
    prepared,
    some_instances,
)
from tests.fakes.disk import Disk, FakeFolder, KilledError

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
        return Node(NODE, boot, data=self.data, cdi_files=self.cdi, lock=lock)

    def checkpoint(self) -> PreparedClaims:
        if CHECKPOINT not in self.data.files:
            return {}
        loaded = checkpoint.load(self.data.files[CHECKPOINT], NODE)
        assert isinstance(loaded, dict)
        return loaded

    def assert_files_are_those_of(self, *claims: PreparedClaim) -> None:
        assert self.checkpoint() == {claim.reference.uid: claim for claim in claims}
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


async def test_grant_is_in_the_checkpoint_before_its_file_and_leaves_it_after(
    machine: Machine,
) -> None:
    node = await machine.start()
    file = cdi.file_name(WANTED.uid)

    assert await grant(node, WANTED) == a_grant(WANTED)
    assert machine.disk.steps == [
        f"write {CHECKPOINT}",
        f"wrote {CHECKPOINT}",
        f"write {file}",
        f"wrote {file}",
    ]
    machine.assert_files_are_those_of(a_grant(WANTED))

    machine.disk.steps.clear()
    assert await release(node, WANTED) == a_grant(WANTED)
    assert machine.disk.steps == [
        f"remove {file}",
        f"removed {file}",
        f"write {CHECKPOINT}",
        f"wrote {CHECKPOINT}",
    ]
    machine.assert_files_are_those_of()


async def test_second_grant_writes_the_file_again_and_nothing_else(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files.clear()
    machine.disk.steps.clear()

    assert await grant(node, WANTED) == a_grant(WANTED)

    assert machine.disk.steps == [
        f"write {cdi.file_name(WANTED.uid)}",
        f"wrote {cdi.file_name(WANTED.uid)}",
    ]
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_grant_whose_files_are_right_writes_nothing(machine: Machine) -> None:
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


async def test_start_writes_wrong_files_before_it_removes_those_of_no_claim(
    machine: Machine,
) -> None:
    node, gone = await machine.start(), cdi.file_name(a_reference(0).uid)
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    wrong = cdi.file_name(OTHER.uid)
    machine.cdi.files |= {wrong: b"{", gone: b"{}"}
    machine.disk.steps.clear()

    await machine.start()

    assert machine.disk.steps == [
        f"write {wrong}",
        f"wrote {wrong}",
        f"remove {gone}",
        f"removed {gone}",
    ]
    machine.assert_files_are_those_of(a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))


async def test_start_removes_the_file_of_a_claim_of_an_earlier_boot(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)

    await machine.start(boot="boot-2")

    assert machine.cdi.files == {}
    assert machine.checkpoint() == {WANTED.uid: a_grant(WANTED)}


async def test_file_that_somebody_replaced_is_written_again(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.write(cdi.file_name(WANTED.uid), b"{}")

    await grant(node, WANTED)

    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_slow_disk_keeps_nobody_else_waiting(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await machine.start()
    monkeypatch.setattr(disk_checkpoint, "SLOW_SECONDS", -1)
    await grant(node, WANTED)
    writing, on = threading.Event(), threading.Event()

    def fail(name: str, size: int) -> bool:
        writing.set()
        return not on.wait(30)

    machine.disk.fail = fail
    waiting = asyncio.create_task(grant(node, OTHER, "loop-bbbbbb"))
    await asyncio.to_thread(writing.wait, 30)
    assert not waiting.done()
    machine.disk.fail = lambda name, size: False
    on.set()

    assert await waiting == a_grant(OTHER, "loop-bbbbbb")


async def test_release_of_what_is_not_granted_is_fine(machine: Machine) -> None:
    node = await machine.start()

    assert await release(node, WANTED) is None
    assert CHECKPOINT not in machine.data.files


async def test_plans_at_one_time_see_each_other(machine: Machine) -> None:
    node = await machine.start()

    granted, refused = await asyncio.gather(grant(node, WANTED), grant(node, OTHER))

    assert granted == a_grant(WANTED)
    assert isinstance(refused, Failure)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_claims_that_wait_for_the_disk_share_a_write(machine: Machine) -> None:
    node = await machine.start()
    references = [a_reference(number) for number in range(1, 51)]
    instances = some_instances(*(an_instance(f"loop-{n:06x}") for n in range(1, 51)))

    async def grant_one(number: int, reference: ClaimReference) -> object:
        claim = allocated(reference, a_result(f"loop-{number:06x}"))
        async with node.exclusively():
            return await node.grant(partial(plan_prepare, claim, instances, boot_id=BOOT))

    granted = await asyncio.gather(*(grant_one(n, r) for n, r in enumerate(references, 1)))

    assert all(isinstance(claim, PreparedClaim) for claim in granted)
    assert machine.disk.steps.count(f"wrote {CHECKPOINT}") < 10
    assert len(machine.checkpoint()) == len(machine.cdi.files) == 50


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
    full = len(machine.data.files[CHECKPOINT])
    machine.disk.fail = lambda name, size: name == CHECKPOINT and size >= full
    machine.disk.steps.clear()

    async with node.checkpoint.writing:  # so that both share a write
        both = asyncio.gather(grant(node, WANTED), release(node, OTHER))
        await asyncio.sleep(0.1)
        assert len(node.checkpoint.waiting) == 2
    refused, released = await both

    assert refused == Failure(
        "the node cannot record what it grants: [Errno 28] No space left on device"
    )
    assert released == a_grant(OTHER, "loop-bbbbbb")
    assert machine.disk.steps.count(f"write {CHECKPOINT}") == 3
    machine.assert_files_are_those_of()

    machine.disk.fail = lambda name, size: False
    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_full_cdi_folder_keeps_the_device_for_its_claim(machine: Machine) -> None:
    node = await machine.start()
    machine.disk.fail = lambda name, size: name != CHECKPOINT

    assert isinstance(await grant(node, WANTED), Failure)
    assert isinstance(await grant(node, OTHER), Failure)

    machine.disk.fail = lambda name, size: False
    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_release_that_cannot_be_written_is_tried_again(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.disk.fail = lambda name, size: True

    assert isinstance(await release(node, WANTED), Failure)
    assert machine.checkpoint() == {WANTED.uid: a_grant(WANTED)}

    machine.disk.fail = lambda name, size: False
    assert await release(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of()


@pytest.mark.parametrize("step", range(4))
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


@pytest.mark.parametrize("step", range(4))
async def test_killed_while_releasing(machine: Machine, step: int) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.disk.kill_at = step
    with pytest.raises(KilledError):
        await release(node, WANTED)
    machine.disk.kill_at = None

    node = await machine.start()

    machine.assert_files_are_those_of(*([a_grant(WANTED)] if step < 3 else []))
    await release(node, WANTED)
    machine.assert_files_are_those_of()


async def test_files_without_a_claim_are_removed_at_the_start(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files[cdi.file_name(OTHER.uid)] = cdi.dump(a_grant(OTHER))
    machine.cdi.files["nvidia.yaml"] = b"theirs"

    await machine.start()

    assert sorted(machine.cdi.files) == [cdi.file_name(WANTED.uid), "nvidia.yaml"]


async def test_next_boot_plans_anew_what_a_claim_gets(machine: Machine) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.cdi.files.clear()

    node = await machine.start("boot-2")

    assert machine.cdi.files == {}
    again = replace(a_grant(WANTED), boot_id="boot-2")
    assert await grant(node, WANTED) == again
    machine.assert_files_are_those_of(again)


def damage(text: bytes) -> bytes:
    return text.replace(b"loop-aaaaaa", b"loop-aaaaab")


@pytest.mark.parametrize("damaged", [b"", b"{}", None])
async def test_corrupt_checkpoint_is_moved_aside_and_rebuilt_from_cdi_files(
    machine: Machine, damaged: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    text = machine.data.files[CHECKPOINT]
    machine.data.files[CHECKPOINT] = damage(text) if damaged is None else damaged
    aside = machine.data.files[CHECKPOINT]

    node = await machine.start()

    assert machine.data.files[f"{CHECKPOINT}.corrupt-0"] == aside
    machine.assert_files_are_those_of(a_grant(WANTED), a_grant(OTHER, "loop-bbbbbb"))
    loud = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert loud[0].startswith("Checkpoint is unreadable: it")
    assert loud[0].endswith("; moved to checkpoint.json.corrupt-0")
    assert loud[1] == "Rebuilt the checkpoint from CDI files: 2 claims"
    assert await grant(node, WANTED) == a_grant(WANTED)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
async def test_half_a_checkpoint_of_the_boot_before_is_in_nobodys_way(
    machine: Machine, kept: float
) -> None:
    await grant(await machine.start(), WANTED)
    text = machine.data.files[CHECKPOINT]
    machine.data.files[CHECKPOINT] = text[: int(len(text) * kept)].ljust(len(text), b"\0")
    machine.cdi.files.clear()  # as /run is after a power cut

    node = await machine.start("next boot")

    assert node.claims_prepared == 0
    assert await release(node, WANTED) is None
    assert isinstance(await grant(node, OTHER), PreparedClaim)


async def test_missing_checkpoint_is_rebuilt_from_cdi_files(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)
    del machine.data.files[CHECKPOINT]

    await machine.start()

    machine.assert_files_are_those_of(a_grant(WANTED))


@pytest.mark.parametrize("by_hand", [True, False])
async def test_nothing_is_granted_while_the_devices_of_a_claim_are_not_known(
    machine: Machine, by_hand: bool
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    await grant(node, OTHER, "loop-bbbbbb")
    machine.data.files[CHECKPOINT] = b"{"
    file = cdi.file_name(WANTED.uid)
    machine.cdi.files[file] = b"{"

    for _ in range(2):  # it is not known any better after another start
        node = await machine.start()

        refused = await grant(node, a_reference(3))
        assert isinstance(refused, Failure)
        assert f"CDI file {file} is unreadable" in refused.sentence
        assert machine.cdi.files[file] == b"{"
        assert await grant(node, OTHER, "loop-bbbbbb") == a_grant(OTHER, "loop-bbbbbb")
    if by_hand:
        machine.cdi.remove(file)
    else:
        await release(node, WANTED)
    assert await grant(node, a_reference(3)) == a_grant(a_reference(3))


async def test_rebuilt_checkpoint_survives_a_full_disk(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)
    machine.data.files[CHECKPOINT] = b"{"
    machine.disk.fail = lambda name, size: name == CHECKPOINT

    node = await machine.start()
    assert isinstance(await grant(node, OTHER), Failure)

    machine.disk.fail = lambda name, size: False
    node = await machine.start()
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_file_that_cannot_be_put_right_does_not_stop_the_start(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)
    machine.cdi.files.clear()
    machine.disk.fail = lambda name, size: True

    node = await machine.start()

    machine.disk.fail = lambda name, size: False
    assert await grant(node, WANTED) == a_grant(WANTED)
    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_overlapping_processes_know_what_the_other_did(machine: Machine) -> None:
    old, new = await machine.start(), await machine.start()

    assert await grant(new, WANTED) == a_grant(WANTED)
    assert isinstance(await grant(old, OTHER), Failure)
    assert await release(old, WANTED) == a_grant(WANTED)
    assert await grant(new, OTHER) == a_grant(OTHER)
    assert await grant(old, OTHER) == a_grant(OTHER)
    machine.assert_files_are_those_of(a_grant(OTHER))


async def test_checkpoint_that_vanishes_under_a_process_is_written_again(
    machine: Machine,
) -> None:
    node = await machine.start()
    await grant(node, WANTED)
    machine.data.files.clear()
    machine.cdi.files.clear()

    assert isinstance(await grant(node, OTHER), Failure)
    assert await grant(node, WANTED) == a_grant(WANTED)

    machine.assert_files_are_those_of(a_grant(WANTED))


async def test_given_up_write_leaves_nobody_waiting(machine: Machine) -> None:
    node = await machine.start()
    machine.disk.kill_at = 0

    outcomes = await asyncio.gather(
        grant(node, WANTED), grant(node, OTHER, "loop-bbbbbb"), return_exceptions=True
    )

    assert any(isinstance(o, KilledError) for o in outcomes)
    machine.disk.kill_at = None
    async with asyncio.timeout(5):
        assert await grant(node, WANTED) == a_grant(WANTED)


async def test_checkpoint_is_readable_by_people(machine: Machine) -> None:
    await grant(await machine.start(), WANTED)

    (claim,) = json.loads(machine.data.files[CHECKPOINT])["data"]["claims"]

    assert (claim["namespace"], claim["name"]) == ("default", "claim-1")
