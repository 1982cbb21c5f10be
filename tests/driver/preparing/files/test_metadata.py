"""What containers read of their devices, and the files in which it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk import temporary_in
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing.files import cdi, metadata, records
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.metadata import nothing_known
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
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
from tests.driver.plumbing.writers import ROUNDS, Writers
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder

WANTED = a_reference(1)
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


def documents(text: str) -> list[dict[str, Any]]:
    """All objects of a stream."""
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


class World:
    """A node whose metadata is on a real disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.reader = FakeSource(), FakeReader()
        self.files = folder / "metadata"
        self.data, self.cdi = FakeFolder(Disk()), FakeFolder(Disk())
        self.start()
        self.see(an_instance())

    def start(self) -> None:
        lock = ProcessLock(self.folder / "lock")
        node = Node(NODE, BOOT, data=self.data, cdi_files=self.cdi, lock=lock)
        node.files.metadata = MetadataFiles(self.files)
        self.claims = KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))

    def see(self, *instances: Instance) -> None:
        self.source.known = dict(some_instances(*instances)) if instances else {}
        self.source.discovered.set()

    async def prepare(self, *results: Any, annotations: Any = None) -> PreparedClaim:
        self.reader.put(WANTED, *results)
        if annotations:
            self.reader.stored[WANTED.name]["metadata"]["annotations"] = annotations
        (answer,) = (await self.claims.prepare([WANTED])).values()
        assert isinstance(answer, PreparedClaim), answer
        return answer

    def mounts(self) -> dict[str, str]:
        """By path in the container, where on the host."""
        devices = json.loads(self.cdi.files[f"moorage.dev-claim-{WANTED.uid}.json"])["devices"]
        mounts = [m for d in devices for m in d["containerEdits"].get("mounts", ())]
        assert all(mount["options"] == ["ro", "bind"] for mount in mounts)
        assert len({mount["containerPath"] for mount in mounts}) == len(mounts)
        return {mount["containerPath"]: mount["hostPath"] for mount in mounts}

    def path(self) -> Path:
        (path,) = self.mounts().values()
        return Path(path)

    def read(self) -> dict[str, Any]:
        return documents(self.path().read_text())[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_container_finds_it_where_kubernetes_says(world: World) -> None:
    await world.prepare()

    folder = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim-1"
    assert list(world.mounts()) == [f"{folder}/req/moorage.dev-metadata.json"]


async def test_a_claim_of_a_template_has_the_name_that_the_pod_gave_it(world: World) -> None:
    await world.prepare(annotations={POD_CLAIM: "camera"})

    folder = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/camera"
    assert list(world.mounts()) == [f"{folder}/req/moorage.dev-metadata.json"]
    assert world.read()["podClaimName"] == "camera"


async def test_it_says_what_the_slice_says_in_each_version(world: World) -> None:
    world.see(
        an_instance(
            properties={"URL": "rtsp://192.0.2.5/live"},
            device_attributes={"resource.kubernetes.io/pciBusID": "0000:01:00.0"},
            user_attributes={"floor": {"int": 3}},
        )
    )

    await world.prepare()

    first, second = documents(world.path().read_text())
    assert {**first, "apiVersion": ""} == {**second, "apiVersion": ""}
    assert [first["apiVersion"], second["apiVersion"]] == [
        "metadata.resource.k8s.io/v1beta1",
        "metadata.resource.k8s.io/v1alpha1",
    ]
    assert first == {
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "kind": "DeviceMetadata",
        "metadata": {
            "name": WANTED.name,
            "namespace": WANTED.namespace,
            "uid": WANTED.uid,
            "generation": 1,
        },
        "requests": [
            {
                "name": "req",
                "devices": [
                    {
                        "driver": "moorage.dev",
                        "pool": NODE,
                        "name": "loop-aaaaaa",
                        "attributes": {
                            "configuration": {"string": "loop"},
                            "instance": {"string": "loop-aaaaaa"},
                            "floor": {"int": 3},
                            "resource.kubernetes.io/pciBusID": {"string": "0000:01:00.0"},
                            "URL": {"string": "rtsp://192.0.2.5/live"},
                        },
                        "networkData": {"ips": ["192.0.2.5/32"]},
                    }
                ],
            }
        ],
    }


async def test_each_request_has_one_file_with_all_its_devices(world: World) -> None:
    names = ("loop-aaaaaa", "loop-bbbbbb", "loop-cccccc")
    world.see(*map(an_instance, names))

    await world.prepare(
        a_result(names[0], "one"), a_result(names[1], "one"), a_result(names[2], "two")
    )

    paths = {path.split("/")[-2]: Path(host) for path, host in world.mounts().items()}
    told = {name: documents(path.read_text())[0]["requests"] for name, path in paths.items()}
    assert {
        name: [d["name"] for d in requests[0]["devices"]] for name, requests in told.items()
    } == {
        "one": [names[1], names[0]],
        "two": [names[2]],
    }


async def test_containers_of_any_user_may_read_it_and_nobody_finds_it_on_the_host(
    world: World,
) -> None:
    await world.prepare()

    assert world.path().stat().st_mode & 0o777 == 0o644
    assert world.files.stat().st_mode & 0o777 == 0o700


async def test_it_is_gone_with_the_claim(world: World) -> None:
    await world.prepare()

    await world.claims.unprepare([WANTED])

    assert list(world.files.iterdir()) == []


async def test_what_a_killed_process_left_is_removed_at_the_start(world: World) -> None:
    await world.prepare()
    (world.files / "another_req.json").write_text("{}")
    (world.files / "another_req.json.tmp").write_text("{}")

    world.start()
    await world.claims.recover()

    assert list(world.files.iterdir()) == [world.path()]


async def test_what_another_process_is_writing_stays_at_the_start(world: World) -> None:
    """During an update an older one goes on preparing."""
    await world.prepare()
    (theirs := Path(temporary_in(str(world.files)))).write_text("{")

    world.start()
    await world.claims.recover()
    assert theirs.name in os.listdir(world.files)
    os.utime(theirs, (0, 0))
    world.start()
    await world.claims.recover()

    assert list(world.files.iterdir()) == [world.path()]


def keep_many(root: Path, _: str, told: Connection) -> None:
    """Make the files of many claims; tells how many could not be made."""
    files, failures = MetadataFiles(root / "new"), 0
    for claim in many_claims():
        try:
            files.keep(claim, nothing_known)
        except OSError:
            failures += 1
    told.send(failures)


def many_claims() -> Iterator[PreparedClaim]:
    for number in range(ROUNDS // 3):
        yield replace(prepared(a_reference(number)), pod_claim="x" * 100_000)


def test_two_processes_that_make_the_same_files_both_succeed(tmp_path: Path) -> None:
    files, writers = MetadataFiles(tmp_path / "new"), Writers(tmp_path, a=keep_many, b=keep_many)
    expected = {
        files.path(claim, request): metadata.dump(
            claim, metadata.contents(claim, request, nothing_known), 1
        )
        for claim in many_claims()
        for request in metadata.requests(claim)
    }

    looks = {
        path: path.read_bytes()
        for _ in writers.meanwhile()
        for path in (tmp_path / "new").glob("*.json")
    }

    assert writers.told() == {"a": 0, "b": 0}
    assert all(text == expected[str(path)] for path, text in looks.items())
    assert {str(path) for path in (tmp_path / "new").iterdir()} == expected.keys()


async def test_a_container_that_runs_reads_where_its_device_is_now(world: World) -> None:
    world.see(an_instance(properties={"UDEV_DEVNODE": "/dev/a-long-name"}))
    await world.prepare()
    with world.path().open() as held:
        moved = an_instance(
            properties={"UDEV_DEVNODE": "/dev/b"}, device_specs=(DeviceSpec("/dev/b", "/dev/b"),)
        )
        world.see(moved)
        await world.claims.renew()

        (document, _) = documents(held.read())
    assert document["metadata"]["generation"] == 2
    (device,) = document["requests"][0]["devices"]
    assert device["attributes"]["UDEV_DEVNODE"] == {"string": "/dev/b"}


async def test_a_restart_keeps_what_is_right(world: World) -> None:
    await world.prepare()
    before = world.path().stat()

    world.start()
    await world.claims.recover()
    await world.prepare()

    after = world.path().stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_a_device_that_nobody_reports_keeps_what_was_said_of_it(world: World) -> None:
    await world.prepare()
    path = world.path()
    before = path.read_text()

    world.see()
    await world.claims.renew(again=True)
    assert path.read_text() == before

    path.unlink()
    await world.claims.renew(again=True)
    (device,) = documents(path.read_text())[0]["requests"][0]["devices"]
    assert set(device["attributes"]) == {"configuration", "instance"}


async def test_a_file_that_is_lost_is_written_anew(world: World) -> None:
    await world.prepare()
    world.path().unlink()

    await world.claims.renew(again=True)

    assert world.read()["metadata"]["generation"] == 1


async def test_a_file_that_a_power_cut_emptied_is_written_anew(world: World) -> None:
    await world.prepare()
    world.path().write_text("\0\0\0")

    world.start()
    await world.prepare()

    assert world.read()["requests"]


async def test_nothing_is_prepared_whose_metadata_cannot_be_written(world: World) -> None:
    world.files.write_text("a file where the folder is to be")
    world.reader.put(WANTED)

    (answer,) = (await world.claims.prepare([WANTED])).values()

    assert isinstance(answer, Failure)
    assert "cannot record what it grants" in answer.sentence


async def test_what_an_earlier_driver_prepared_goes_on_without(world: World) -> None:
    claim = await world.prepare()
    earlier = replace(claim, pod_claim=None)
    world.cdi.write(cdi.file_name(WANTED.uid), cdi.dump(earlier))

    world.start()
    await world.claims.recover()
    await world.prepare()

    assert world.mounts() == {}


def test_a_record_keeps_what_the_pod_calls_a_claim() -> None:
    for name in (None, "", "camera"):
        claim = replace(prepared(WANTED), pod_claim=name)
        assert records.load(records.dump(claim)) == claim


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b'{"metadata": {"generation": "x"}}', b"7"])
def test_what_is_no_metadata_counts_as_none(text: bytes) -> None:
    assert metadata.load(text) == ({}, 0)
