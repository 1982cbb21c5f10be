"""Whatever becomes of devices and of all who know them, no file leads to another's device.

Devices are plugged, pulled, moved and swapped, claims prepared and unprepared, driver and kubelet
start anew, are killed between any two writes, and the node reboots. After each step

* a claim's CDI file names the device that it was allocated, at the place where that is, or none;
* what the kubelet was told is told again in the same words, or refused while the device is away;
* a claim whose device is there can be prepared, and its file then names it.

While no driver runs, devices move and files cannot: the promise holds again before it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from driver.api import ClaimUid, ConfigurationName, InstanceName
from driver.device_plugin.containers.disk_cdi import instance_files
from driver.device_plugin.containers.instance_cdi import file_name, given_file
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing.files import cdi
from driver.preparing.files.prepared import ClaimReference, PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_reference, a_result, an_instance, some_instances
from tests.driver.preparing.test_grant_histories import _tell_nobody_of_kills
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder
from tests.fakes.killed import KilledError

SERIALS = ("aaaaaa", "bbbbbb", "cccccc")
PATHS = ("/dev/sda", "/dev/sdb", "/dev/sdc")
CONFIGURATION = ConfigurationName("disk")

serials = st.sampled_from(SERIALS)
paths = st.sampled_from(PATHS)
claims = st.sampled_from([a_reference(number) for number in range(1, 4)])


def instance(serial: str, path: str, *, online: bool = True) -> Instance:
    return an_instance(
        f"{CONFIGURATION}-{serial}",
        device=f"serial {serial}",
        properties={"UDEV_DEVNODE": path},
        device_specs=(DeviceSpec(path, path),),
        online=online,
    )


class Histories(RuleBasedStateMachine):
    """A node with a few places to plug a device in, its driver, and a kubelet."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.runner.get_loop().set_exception_handler(_tell_nobody_of_kills)
        self.folder = tempfile.TemporaryDirectory()
        self.disk = Disk()
        self.data, self.cdi = FakeFolder(self.disk), FakeFolder(self.disk)
        self.reader, self.source = FakeReader(), FakeSource()
        self.plugged: dict[str, str] = {}
        self.published: set[str] = set()
        self.boot = 1
        self.told: dict[ClaimUid, tuple[str, ...]] = {}
        self.plugin: KubeletClaims | None = None

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    @initialize(prepared=st.booleans())
    def begin(self, prepared: bool) -> None:
        """Two devices are there, and claims have them: most of what goes wrong begins so."""
        self.start()
        for claim, serial, path in zip(map(a_reference, (1, 2)), SERIALS, PATHS, strict=False):
            self.plug_or_move(serial, path)
            self.allocate(claim, serial)
            if prepared:
                self.prepare(claim)
                assert claim.uid in self.told

    def start(self) -> None:
        """The driver begins, and hears of the devices before it serves the kubelet."""
        self.look(forget=True)
        node = Node(
            NODE,
            f"boot-{self.boot}",
            data=self.data,
            cdi_files=self.cdi,
            lock=ProcessLock(Path(self.folder.name) / "lock"),
        )
        self.plugin = KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))
        self.runner.run(self.plugin.recover())

    def look(self, *, forget: bool = False) -> None:
        """Discovery reports what is plugged; what went away is published until it is forgotten."""
        if forget:
            self.published.clear()
        self.published |= self.plugged.keys()
        devices = [
            instance(serial, self.plugged.get(serial, "/dev/none"), online=serial in self.plugged)
            for serial in sorted(self.published)
        ]
        self.source.known = dict(some_instances(*devices)) if devices else {}
        self.source.discovered.set()

    def changed(self) -> None:
        if self.plugin is not None:
            self.look()
            self.runner.run(self.plugin.renew())

    @rule(serial=serials, path=paths)
    def plug_or_move(self, serial: str, path: str) -> None:
        if path not in self.plugged.values():
            self.plugged[serial] = path
            self.changed()

    @rule(serial=serials)
    def pull(self, serial: str) -> None:
        if self.plugged.pop(serial, None):
            self.changed()

    @rule(pulled=serials, plugged=serials)
    def replace(self, pulled: str, plugged: str) -> None:
        """In one discovery turn a device goes and another takes its place."""
        if pulled != plugged and pulled in self.plugged:
            self.plugged[plugged] = self.plugged.pop(pulled)
            self.changed()

    @rule(one=serials, other=serials)
    def swap(self, one: str, other: str) -> None:
        here, there = self.plugged.get(one), self.plugged.get(other)
        if here and there:
            self.plugged.update({one: there, other: here})
            self.changed()

    @rule(one=serials, other=serials, step=st.integers(0, 6))
    def killed_while_devices_swap(self, one: str, other: str, step: int) -> None:
        self.disk.kill_at = step
        with suppress(KilledError, asyncio.CancelledError):
            self.swap(one, other)
        self.revive()

    @rule(claim=claims, step=st.integers(0, 6), unprepare=st.booleans())
    def killed_while_serving(self, claim: ClaimReference, step: int, unprepare: bool) -> None:
        if self.plugin is not None:
            call = self.plugin.unprepare if unprepare else self.plugin.prepare
            self.disk.kill_at = step
            with suppress(KilledError, asyncio.CancelledError):
                self.runner.run(call([claim]))
            if unprepare:
                self.told.pop(claim.uid, None)
            self.revive()

    def revive(self) -> None:
        if self.plugin is not None:
            self.runner.run(self.plugin.calls.finish(1))
            self.disk.kill_at = None
            self.start()
        self.disk.kill_at = None

    @rule()
    def fill_the_disk_for_a_turn(self) -> None:
        """What could not be written is withheld; the driver tries again."""
        if self.plugin is not None and len(self.plugged) > 1:
            one, other = sorted(self.plugged)[:2]
            self.plugged[one], self.plugged[other] = self.plugged[other], self.plugged[one]
            self.look()
            self.disk.fail = lambda name, size: True
            with suppress(OSError):
                self.runner.run(self.plugin.renew())
            self.every_file_names_the_device_of_its_claim_or_none()
            self.disk.fail = lambda name, size: False
            self.runner.run(self.plugin.renew())

    @rule()
    def stop(self) -> None:
        self.plugin = None

    @rule()
    def restart(self) -> None:
        self.start()

    @rule()
    def reboot(self) -> None:
        """The folder of CDI files is in memory; all containers are gone."""
        self.boot += 1
        self.cdi.files.clear()
        self.told.clear()
        self.start()

    @precondition(lambda self: self.plugin)
    @rule()
    def hear_nothing_of_the_configuration(self) -> None:
        """Its handler begins anew: not heard is not gone, and another's path is not given."""
        assert self.plugin is not None
        self.source.unheard = frozenset({CONFIGURATION})
        before = dict(self.cdi.files)
        self.runner.run(self.plugin.renew())
        assert self.cdi.files.keys() == before.keys()
        self.source.unheard = frozenset()
        self.runner.run(self.plugin.renew())

    @rule(claim=claims, serial=serials)
    def allocate(self, claim: ClaimReference, serial: str) -> None:
        if claim.uid not in self.told:
            self.reader.put(claim, a_result(f"{CONFIGURATION}-{serial}"))

    @precondition(lambda self: self.plugin)
    @rule(claim=claims, serial=serials)
    def allocate_and_prepare(self, claim: ClaimReference, serial: str) -> None:
        """As a pod of a new claim has it done."""
        self.allocate(claim, serial)
        self.prepare(claim)

    @precondition(lambda self: self.plugin)
    @rule(claim=claims)
    def prepare(self, claim: ClaimReference) -> None:
        """For a first pod, or another."""
        assert self.plugin is not None
        self.note(self.runner.run(self.plugin.prepare([claim])), claim)

    @precondition(lambda self: self.plugin)
    @rule()
    def restart_the_kubelet(self) -> None:
        for claim in map(a_reference, range(1, 4)):
            if claim.uid in self.told:
                self.prepare(claim)

    @precondition(lambda self: self.plugin)
    @rule(claim=claims)
    def unprepare(self, claim: ClaimReference) -> None:
        assert self.plugin is not None
        (answer,) = self.runner.run(self.plugin.unprepare([claim])).values()
        assert not isinstance(answer, Failure)
        self.told.pop(claim.uid, None)
        assert cdi.file_name(claim.uid) not in self.cdi.files

    def note(
        self, answers: Mapping[ClaimUid, PreparedClaim | Failure], claim: ClaimReference
    ) -> None:
        answer, serial = answers[claim.uid], self.serial_of(claim.uid)
        if isinstance(answer, Failure):
            taken = "still prepared" in answer.sentence
            assert serial is None or serial not in self.plugged or taken, answer
            return
        ids = tuple(i for device in answer.devices for i in cdi.device_ids(device))
        assert self.told.setdefault(claim.uid, ids) == ids
        assert serial is not None
        assert self.nodes(claim.uid) == {serial: {self.plugged[serial]}}

    def serial_of(self, uid: ClaimUid) -> str | None:
        for body in self.reader.stored.values():
            if body["metadata"]["uid"] == uid:
                (result,) = body["status"]["allocation"]["devices"]["results"]
                return str(result["device"]).rpartition("-")[2]
        return None

    def nodes(self, uid: ClaimUid) -> dict[str, set[str]]:
        """Device nodes that containers are given, and what variables say, by the device's name.

        That is a part of the CDI name, so no container gets what an earlier allocation left.
        """
        found: dict[str, set[str]] = {}
        for device in json.loads(self.cdi.files[cdi.file_name(uid)])["devices"]:
            edits, serial = device["containerEdits"], device["name"].rpartition("-")[2]
            if "_record" not in device["name"]:
                variables = {variable.partition("=")[2] for variable in edits["env"]}
                found[serial] = variables | {node["hostPath"] for node in edits["deviceNodes"]}
        return found

    @invariant()
    def every_file_names_the_device_of_its_claim_or_none(self) -> None:
        if self.plugin is None:
            return
        for name in self.cdi.files:
            if (uid := cdi.claim_of(name)) and name == cdi.file_name(uid):
                for serial, places in self.nodes(uid).items():
                    assert places == {self.plugged.get(serial)}, (name, self.plugged)
                    assert uid not in self.told or serial == self.serial_of(uid)


class GivenHistories(RuleBasedStateMachine):
    """The same of what the device plugin gave: the kubelet's answer stays, files and links follow.

    After each step, CDI file and link of an Instance lead to its device, or nowhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "cdi"
        self.plugged: dict[str, str] = {}
        self.held: set[str] = set()
        self.unheard: frozenset[ConfigurationName] = frozenset()
        self.start()

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    def start(self) -> None:
        self.files = instance_files(self.root)

    def where(self) -> DeviceLocator:
        there = [instance(serial, path) for serial, path in self.plugged.items()]
        return DeviceLocator(() if self.unheard else there, self.unheard)

    def follow(self) -> None:
        held = {InstanceName(f"{CONFIGURATION}-{serial}"): False for serial in self.held}
        self.runner.run(self.files.follow(held, self.where()))

    @rule(serial=serials, path=paths)
    def plug_or_move(self, serial: str, path: str) -> None:
        if path not in self.plugged.values():
            self.plugged[serial] = path

    @rule(serial=serials)
    def pull(self, serial: str) -> None:
        self.plugged.pop(serial, None)

    @rule(one=serials, other=serials)
    def swap(self, one: str, other: str) -> None:
        here, there = self.plugged.get(one), self.plugged.get(other)
        if here and there:
            self.plugged.update({one: there, other: here})

    @rule(serial=serials)
    def allocate(self, serial: str) -> None:
        if serial in self.plugged:
            given = instance(serial, self.plugged[serial])
            assert given.name in self.runner.run(self.files.write([given]))
            self.held.add(serial)

    @rule(serial=serials)
    def release(self, serial: str) -> None:
        self.held.discard(serial)

    @rule()
    def restart_and_hear_later(self) -> None:
        before = dict(self.leads())
        self.start()
        self.unheard = frozenset({CONFIGURATION})
        self.follow()
        assert dict(self.leads()) == before
        self.unheard = frozenset()

    @rule()
    def reboot(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.start()

    def leads(self) -> Iterator[tuple[str, str]]:
        for serial in self.held:
            link = self.root / "moorage.dev" / f"{CONFIGURATION}-{serial}" / "device-0"
            if link.is_symlink():
                yield serial, os.readlink(link)

    @invariant()
    def all_leads_to_the_device_or_nowhere(self) -> None:
        self.follow()
        for serial, target in self.leads():
            nowhere = target.startswith("/dev/moorage.dev: ")
            assert nowhere if serial not in self.plugged else target == self.plugged[serial]
        for serial in self.held:
            file = self.root / file_name(InstanceName(f"{CONFIGURATION}-{serial}"))
            assert file.exists() == (serial in self.plugged)
            if file.exists():
                said = given_file(file.read_bytes())
                assert said is not None
                assert said.paths == (self.plugged[serial],)


TestGivenHistories = GivenHistories.TestCase
TestGivenHistories.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
