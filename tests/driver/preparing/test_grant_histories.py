"""Any history of calls, kills, full disks, restarts and reboots keeps three promises.

* What the kubelet was told, it is told again, until it asked to unprepare or the machine rebooted.
* No exclusive device is prepared for two claims.
* After a start, and after each call that ended well, the files are those of the claims in memory
  that are not lost. What is lost is settled as the API server says.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from driver.api import ClaimUid
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing.files import cdi
from driver.preparing.files.prepared import (
    ClaimReference,
    PreparedClaim,
    PreparedClaims,
    PreparedDevice,
)
from driver.preparing.grants import disk_grants
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.lost_claims import Use
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    a_reference,
    a_result,
    an_instance,
    records_in,
    some_instances,
)
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder
from tests.fakes.killed import KilledError

DEVICES = ("loop-aaaaaa", "loop-bbbbbb", "cam-cccccc")
SHARED = "cam-cccccc"

claims = st.sampled_from([a_reference(number) for number in range(1, 5)])
several = st.lists(claims, min_size=1, max_size=4, unique=True)
steps = st.integers(0, 8)


def shared(device: str, claim: ClaimReference, request: int) -> dict[str, Any]:
    """A share of a device that allows several allocations, else the whole device."""
    return {"shareID": f"{claim.uid[:8]}-{request}"} if device == SHARED else {}


class Histories(RuleBasedStateMachine):
    """One node, its API server, and a kubelet that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.runner.get_loop().set_exception_handler(_tell_nobody_of_kills)
        self.folder = tempfile.TemporaryDirectory()
        self.disk = Disk()
        self.data, self.cdi = FakeFolder(self.disk), FakeFolder(self.disk)
        self.reader, self.source = FakeReader(), FakeSource()
        self.source.known.update(some_instances(*map(an_instance, DEVICES)))
        self.source.discovered.set()
        self.boot = 1
        self.older: KubeletClaims | None = None
        self.told: dict[ClaimUid, tuple[PreparedDevice, ...]] = {}

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    @initialize()
    def start(self) -> None:
        node = Node(
            NODE,
            f"boot-{self.boot}",
            data=self.data,
            cdi_files=self.cdi,
            lock=ProcessLock(Path(self.folder.name) / "lock"),
        )
        self.plugin = KubeletClaims(
            node,
            self.reader,
            self.source,
            pools=frozenset({NODE}),
        )
        self.runner.run(self.plugin.recover())
        self.assert_files_are_those_of_the_claims()

    @rule()
    def settle(self) -> None:
        """The API server tells which of the lost claims pods have."""
        self.runner.run(self.plugin.renew(again=True))
        for uid in self.plugin.lost:
            self.runner.run(self.plugin.cleanup.settle(uid, partial(self.use, uid)))
        self.runner.run(self.plugin.renew(again=True))
        assert self.plugin.lost == {}
        self.assert_files_are_those_of_the_claims()

    async def use(self, uid: ClaimUid) -> Use:
        return Use.RUNNING if uid in self.told else Use.NONE

    @rule(claim=claims, devices=st.lists(st.sampled_from(DEVICES), min_size=1, max_size=2))
    def allocate(self, claim: ClaimReference, devices: list[str]) -> None:
        """What kube-scheduler may do: it does not know what is still prepared elsewhere."""
        if claim.uid not in self.told:
            results = [
                a_result(device, f"req-{n}", **shared(device, claim, n))
                for n, device in enumerate(dict.fromkeys(devices))
            ]
            asked = {"env": {"LENS": claim.name}, "uid": 7}
            self.reader.put(claim, *results, asked=asked if claim == a_reference(1) else None)

    @rule(wanted=several)
    def prepare(self, wanted: list[ClaimReference]) -> None:
        self.note(self.runner.run(self.plugin.prepare(wanted)))
        self.assert_files_are_those_of_the_claims()

    @rule(wanted=several)
    def unprepare(self, wanted: list[ClaimReference]) -> None:
        answers = self.runner.run(self.plugin.unprepare(wanted))
        for uid, answer in answers.items():
            assert not isinstance(answer, Failure)
            self.told.pop(uid, None)
        self.assert_files_are_those_of_the_claims()

    @rule(wanted=several, step=steps, unprepare=st.booleans())
    def kill(self, wanted: list[ClaimReference], step: int, unprepare: bool) -> None:
        """The kubelet hears nothing, not even of those that went well."""
        call = self.plugin.unprepare if unprepare else self.plugin.prepare
        self.disk.kill_at = step
        with suppress(KilledError, asyncio.CancelledError):
            self.runner.run(call(wanted))
        self.runner.run(self.plugin.calls.finish(1))
        self.disk.kill_at = None
        if unprepare:
            for claim in wanted:
                self.told.pop(claim.uid, None)
        self.start()

    @rule(wanted=several, leaving=several, step=st.none() | steps, slow=st.booleans())
    def prepare_while_others_leave(
        self,
        wanted: list[ClaimReference],
        leaving: list[ClaimReference],
        step: int | None,
        slow: bool,
    ) -> None:
        """They share writes, and are killed in them together."""
        leaving = [claim for claim in leaving if claim not in wanted]

        async def at_once() -> Mapping[ClaimUid, PreparedClaim | Failure]:
            prepare = asyncio.create_task(self.plugin.prepare(wanted))
            await asyncio.gather(prepare, self.plugin.unprepare(leaving))
            return prepare.result()

        self.disk.kill_at = step
        with patch.object(disk_grants, "SLOW_SECONDS", -1 if slow else 60):
            try:
                answers = self.runner.run(at_once())
            except (KilledError, asyncio.CancelledError):
                answers = {}
        killed = self.disk.kill_at == 0
        for claim in leaving:
            self.told.pop(claim.uid, None)
        if not killed:
            self.note(answers)
        self.runner.run(self.plugin.calls.finish(1))
        self.disk.kill_at = None
        if killed:
            self.start()
        self.assert_files_are_those_of_the_claims()

    @rule(wanted=several, limit=st.integers(0, 3000))
    def fill_the_disk(self, wanted: list[ClaimReference], limit: int) -> None:
        self.disk.fail = lambda name, size: size > limit
        self.note(self.runner.run(self.plugin.prepare(wanted)), forgive_failures=True)
        self.runner.run(self.plugin.unprepare(wanted))
        self.disk.fail = lambda name, size: False
        self.unprepare(wanted)

    @rule(wanted=several)
    def remove_files_by_hand(self, wanted: list[ClaimReference]) -> None:
        """What is told is told again, and its device is given to no other claim meanwhile."""
        self.runner.run(self.plugin.renew(again=True))
        before = dict(self.plugin.prepared)
        for claim in wanted:
            self.cdi.files.pop(cdi.file_name(claim.uid), None)
        self.runner.run(self.plugin.renew(again=True))
        assert self.plugin.prepared == before
        assert self.plugin.lost.keys() >= before.keys() & {claim.uid for claim in wanted}
        self.assert_files_are_those_of_the_claims()

    @precondition(lambda self: self.older is None)
    @rule(wanted=several, restarts=st.booleans())
    def lose_the_folder(self, wanted: list[ClaimReference], restarts: bool) -> None:
        """It is gone under the driver; the next one has a new folder, or it comes back."""
        before = self.plugin.prepared.keys()
        self.cdi.files.clear()
        self.cdi.trouble = "it was removed"
        self.runner.run(self.plugin.renew(again=True))
        answers = self.runner.run(self.plugin.prepare(wanted))
        assert all(isinstance(answer, Failure) for answer in answers.values())
        assert self.plugin.prepared.keys() == before
        self.runner.run(self.plugin.unprepare(wanted[:1]))
        self.told.pop(wanted[0].uid, None)
        self.cdi.trouble = ""
        if restarts:
            self.start()
        else:
            self.runner.run(self.plugin.renew(again=True))
        assert self.plugin.prepared.keys() == before - {wanted[0].uid}
        self.assert_files_are_those_of_the_claims()

    @rule()
    def restart(self) -> None:
        self.start()

    @rule()
    def replace_the_process(self) -> None:
        """A rolling update: the older process may prepare and unprepare still."""
        self.older = self.plugin
        self.start()

    @precondition(lambda self: self.older is not None)
    @rule(wanted=several, unprepare=st.booleans())
    def ask_the_older_process(self, wanted: list[ClaimReference], unprepare: bool) -> None:
        assert self.older is not None
        if not unprepare:
            self.note(self.runner.run(self.older.prepare(wanted)))
            return
        for uid, answer in self.runner.run(self.older.unprepare(wanted)).items():
            assert not isinstance(answer, Failure)
            self.told.pop(uid, None)

    @precondition(lambda self: self.older is not None)
    @rule(wanted=several)
    def look_in_both_processes(self, wanted: list[ClaimReference]) -> None:
        """What the newer one has released it does not take from the older one's record."""
        assert self.older is not None
        self.unprepare(wanted)
        for process in (self.older, self.plugin):
            self.runner.run(process.renew(again=True))
        assert not self.plugin.prepared.keys() & {claim.uid for claim in wanted}
        self.assert_files_are_those_of_the_claims()

    @rule(cleared=st.booleans())
    def reboot(self, cleared: bool) -> None:
        """The folder of CDI files is in memory, or not; all containers are gone."""
        self.boot += 1
        self.older = None
        if cleared:
            self.cdi.files.clear()
        self.told.clear()
        self.start()

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def ask_without_the_api_server(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.told)))
        claim = next(c for c in map(a_reference, range(1, 5)) if c.uid == uid)
        self.reader.error = ConnectionError("away")
        self.source.discovered.clear()
        answers = self.runner.run(self.plugin.prepare([claim]))
        self.reader.error = None
        self.source.discovered.set()
        if uid in self.records():
            self.note(answers)
            assert isinstance(answers[uid], PreparedClaim)

    @invariant()
    def no_exclusive_device_is_prepared_twice(self) -> None:
        held = [
            device.allocated.device
            for claim in self.records().values()
            for device in claim.devices
            if device.allocated.share_id is None
        ]
        assert len(held) == len(set(held))

    def note(
        self,
        answers: Mapping[ClaimUid, PreparedClaim | Failure],
        *,
        forgive_failures: bool = False,
    ) -> None:
        for uid, answer in answers.items():
            if isinstance(answer, PreparedClaim):
                assert self.told.setdefault(uid, answer.devices) == answer.devices
            elif not forgive_failures and uid in self.records():
                assert uid not in self.told, answer

    def records(self) -> PreparedClaims:
        return records_in(self.cdi.files)

    def assert_files_are_those_of_the_claims(self) -> None:
        claims, lost = self.plugin.prepared, self.plugin.lost
        claims = {uid: claim for uid, claim in claims.items() if uid not in lost}
        assert self.cdi.files == {cdi.file_name(uid): cdi.dump(c) for uid, c in claims.items()}
        assert all(claim.boot_id == f"boot-{self.boot}" for claim in claims.values())


def _tell_nobody_of_kills(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """All tasks of a killed process end, and nobody asks how.

    Their traceback would be printed whenever they are collected, in the middle of another parse
    of the same thread, say, which Python 3.11 does not survive: printing one parses, too.
    """
    if not isinstance(context.get("exception"), KilledError):
        loop.default_exception_handler(context)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30)
