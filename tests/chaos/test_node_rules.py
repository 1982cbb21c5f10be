"""What the checker finds on a node: containers with the wrong devices, and files of nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.chaos import made
from tests.chaos.node_reports import Container, Listed, NodeReport
from tests.chaos.node_rules import node_findings
from tests.chaos.objects import Object

UID = "0f0f0f0f-0000-4000-8000-000000000000"
FILE = f"moorage.dev-claim-{UID}.json"
POD = made.pod("p", "red", "c", on="a")
HASH = "abc123"


def instance() -> Object:
    spec = {"configurationName": "disk", "brokerProperties": {"UDEV_DEVNODE": "/dev/loop7"}}
    return {"kind": "Instance", "metadata": {"name": f"disk-{HASH}"}, "spec": spec}


def claim() -> Object:
    found = made.claim("c", "red", POD)
    found["metadata"]["uid"] = UID
    found["status"]["allocation"]["devices"]["results"][0]["device"] = f"disk-{HASH}"
    return found


CONTAINER = Container(
    "uid-p", "main", {f"UDEV_DEVNODE_{HASH.upper()}": "/dev/loop7"}, {"/dev/loop7": (7, 7)}
)
REPORT = NodeReport("a", (), {FILE: {}}, (CONTAINER,), {"/dev/loop7": (7, 7), "/dev/loop8": (7, 8)})


def rules(report: NodeReport, *bodies: Object) -> set[str]:
    found = made.snapshot(*(bodies or (instance(), claim(), POD)))
    return {finding.rule for finding in node_findings(report, found)}


def with_container(
    environment: Mapping[str, str], devices: Mapping[str, tuple[int, int]]
) -> NodeReport:
    changed = replace(CONTAINER, environment=environment, devices=devices)
    return replace(REPORT, containers=(changed,))


def test_a_container_with_its_device_is_in_order() -> None:
    assert rules(REPORT) == set()


def test_a_container_keeps_a_device_that_was_pulled() -> None:
    pulled = replace(REPORT, numbers={"/dev/loop8": (7, 8)})
    assert rules(pulled) == set()


def test_anothers_device_node_is_found() -> None:
    devices = {"/dev/loop7": (7, 7), "/dev/loop8": (7, 8)}
    assert rules(with_container(CONTAINER.environment, devices)) == {"anothers-device"}


def test_another_device_at_its_path_is_found() -> None:
    moved = with_container(CONTAINER.environment, {"/dev/loop7": (7, 8)})
    assert rules(moved) == {"anothers-device", "without-its-own"}


def test_anothers_environment_is_found() -> None:
    both = {**CONTAINER.environment, "DEBUG_ECHO_DESCRIPTION_FEDCBA": "x"}
    assert rules(with_container(both, CONTAINER.devices)) == {"anothers-device"}


def test_a_container_without_its_device_is_found() -> None:
    assert rules(with_container({}, {})) == {"without-its-own"}


def test_a_file_that_nobody_uses_is_found() -> None:
    assert rules(replace(REPORT, containers=()), instance()) == {"left-over"}


def test_a_pod_without_its_file_is_found() -> None:
    assert rules(replace(REPORT, cdi_files={})) == {"no-record"}


def test_slots_are_read_of_the_kubelet() -> None:
    slot = Listed(("lab", "p"), "main", {f"akri.sh/disk-{HASH}": (f"disk-{HASH}-0",)}, ())
    alone = made.pod("p", "red", on="a")
    report = replace(REPORT, listed=(slot,), cdi_files={})
    assert rules(report, instance(), alone) == set()
    assert rules(replace(report, listed=()), instance(), alone) == {"anothers-device"}


def test_a_use_of_any_device_is_known_by_its_instance() -> None:
    any_device = Listed(("lab", "p"), "main", {"akri.sh/disk": ("3",)}, ())
    alone = made.pod("p", "red", on="a")
    report = replace(REPORT, listed=(any_device,), cdi_files={})
    used = instance()
    used["spec"]["deviceUsage"] = {f"disk-{HASH}-0": "C:3:a"}
    assert rules(report, used, alone) == set()
