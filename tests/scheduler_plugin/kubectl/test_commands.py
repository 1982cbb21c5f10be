"""Flags and names, where kubectl's users write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from scheduler_plugin.kubectl.commands import app
from scheduler_plugin.kubectl.flag_order import command_first
from tests.scheduler_plugin.asking.test_snapshots import raw
from tests.scheduler_plugin.builders import a_claim_object, a_queue_object, a_request
from tests.scheduler_plugin.kubectl.snapshots import Objects, a_file, ask


def two_namespaces() -> Objects:
    objects = raw()
    other = a_claim_object("door", namespace="team", requests=[a_request()])
    objects["resourceclaims"].append(other)
    objects["namespaces"].append({"metadata": {"name": "team"}})
    objects["queues"].append(a_queue_object("robots", onvif=(0, 1)))
    return objects


def answer(folder: Path, *words: str) -> Any:
    done = ask(*words, f"--snapshot={a_file(folder, two_namespaces())}", "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("claims",), ["default/cam", "default/more", "team/door"]),
        (("claims", "-A"), ["default/cam", "default/more", "team/door"]),
        (("claims", "-n", "team"), ["team/door"]),
        (("-n", "team", "claims"), ["team/door"]),
        (("--namespace=team", "claims", "-A"), ["default/cam", "default/more", "team/door"]),
        (("claims", "more", "-n", "default", "more"), ["default/more"]),
        (("-ndefault", "claims", "more", "cam"), ["default/cam", "default/more"]),
    ],
)
def test_claims_are_those_of_a_namespace_and_of_names(
    words: tuple[str, ...], found: list[str], tmp_path: Path
) -> None:
    rows = answer(tmp_path, *words)

    assert [f"{row['namespace']}/{row['name']}" for row in rows] == found


def test_claims_tell_their_devices(tmp_path: Path) -> None:
    devices = {row["name"]: row["devices"] for row in answer(tmp_path, "claims", "-n", "default")}

    assert devices == {"cam": ["moorage.dev/onvif/onvif-aaaaaa"], "more": []}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("queues", "robots"), {"robots"}),
        (("queues", "robots", "-n", "team"), {"robots"}),
        (("-A", "queues"), {"robots", "vision"}),
    ],
)
def test_queues_are_chosen_by_name_and_have_no_namespace(
    words: tuple[str, ...], names: set[str], tmp_path: Path
) -> None:
    assert {row["queue"] for row in answer(tmp_path, *words)} == names


def test_devices_are_chosen_by_their_own_name_or_their_instances(tmp_path: Path) -> None:
    (row,) = answer(tmp_path, "devices", "onvif-aaaaaa")

    assert row["name"] == "onvif-aaaaaa"


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("claims", "a", "-A"), 2, "names and --all-namespaces exclude each other"),
        (("why", "a", "-A"), 2, "names and --all-namespaces exclude each other"),
        (("claims", "a", "-l", "x=y"), 2, "names and --selector exclude each other"),
        (("queues", "-l", "x=y"), 2, "a snapshot keeps no labels"),
        (("devices", "-l", "x=y"), 2, "No such option"),
        (("claims", "a", "-n", "team"), 1, "no accounted ResourceClaim a in namespace team"),
        (("queues", "vision", "a", "b"), 1, "there is no Queue a, b."),
        (("devices", "a"), 1, "there is no device a."),
        (("handlers", "a"), 2, "unexpected extra argument"),
        (("--nonsense", "queues"), 2, "No such option"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    words: tuple[str, ...], status: int, sentence: str, tmp_path: Path
) -> None:
    done = ask(*words, f"--snapshot={a_file(tmp_path, two_namespaces())}")

    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        (["queues", "-n", "a"], ["queues", "-n", "a"]),
        (["-n", "a", "-A", "claims", "b"], ["claims", "-n", "a", "-A", "b"]),
        (["-na", "--output=json", "claims"], ["claims", "-na", "--output=json"]),
        (["--help"], ["--help"]),
        (["-n", "a"], ["-n", "a"]),
        ([], []),
    ],
)
def test_flags_may_stand_before_the_command(words: list[str], ordered: list[str]) -> None:
    assert command_first(typer.main.get_command(app), words) == ordered


def test_a_flag_behind_the_command_wins_over_the_same_before_it(tmp_path: Path) -> None:
    rows = answer(tmp_path, "-n", "default", "claims", "-n", "team")

    assert [row["name"] for row in rows] == ["door"]


def test_the_version_of_the_client_needs_no_cluster() -> None:
    text, plain = ask("version", "--client"), ask("version", "--client", "-o", "json")

    (line,) = text.stdout.splitlines()
    assert line == f"Client Version: {json.loads(plain.stdout)['clientVersion']}"


def test_a_snapshot_that_tells_no_time_is_refused(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "takenAt": "yesterday"}))

    done = ask("handlers", f"--snapshot={file}")

    assert done.returncode == 2
    assert 'takenAt: "yesterday" is not a time with a zone' in done.stderr
