"""Whether a node's driver is ready is its own to say, and not that of the process before."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from driver.api import ClaimUid
from driver.preparing.files.prepared import PreparedClaim, lost_claim
from driver.preparing.kubelet_plugin import Registration
from driver.running.monitoring import ready_main, ready_socket
from driver.running.node.node_main import Readiness
from tests.driver.claim_builders import BOOT, a_reference, prepared
from tests.driver.tasks import running, until

DATA = Path("/plugins/moorage.dev")


async def asked(folder: Path, pod_uid: str) -> tuple[int | None, str]:
    """What the probe of a pod answers the kubelet, in a process of its own."""
    probe = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "driver.running.monitoring.ready_main", str(folder)),
        env={**os.environ, "POD_UID": pod_uid},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await probe.communicate()
    return probe.returncode, printed.decode().strip()


async def test_each_pod_is_asked_for_itself(tmp_path: Path) -> None:
    why = {"old": "", "new": "Not yet."}
    sockets = {pod: tmp_path / ready_main.socket_name(pod) for pod in why}

    async with (
        running(ready_socket.serve(sockets["old"], lambda: why["old"])),
        running(ready_socket.serve(sockets["new"], lambda: why["new"])),
    ):
        await until(lambda: all(path.exists() for path in sockets.values()))
        assert await asked(tmp_path, "old") == (0, "")
        assert await asked(tmp_path, "new") == (1, "Not yet.")
        why["new"] = ""
        assert await asked(tmp_path, "new") == (0, "")

    assert not os.listdir(tmp_path)


async def test_a_driver_that_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    code, why = await asked(tmp_path, "gone")

    assert (code, "does not answer" in why) == (1, True)


async def test_a_container_that_starts_again_takes_its_pods_socket_over(tmp_path: Path) -> None:
    path = tmp_path / ready_main.socket_name("pod")
    path.write_text("what a killed process left")

    async with running(ready_socket.serve(path, lambda: "")):
        await until(path.is_socket)
        assert await asked(tmp_path, "pod") == (0, "")


def cluster(inventory: object) -> Any:
    return SimpleNamespace(inventory=inventory, why_unknown=lambda: "not known yet which devices")


def path(*, is_dra: bool = True, waits_for_others: bool = False) -> Any:
    return SimpleNamespace(is_dra=is_dra, waits_for_others=waits_for_others)


def node(*doubtful: PreparedClaim, **problems: str) -> Any:
    found = {claim.reference.uid: claim for claim in doubtful}
    none = {"folder_problem": "", "metadata_problem": "", "rescue_problem": ""}
    return SimpleNamespace(doubtful=found, **{**none, **problems})


def registered(problem: str) -> Registration:
    registration = Registration("/dra.sock")
    registration.problem = problem
    return registration


@pytest.mark.parametrize(
    ("inventory", "node_path", "registration", "why"),
    [
        (None, path(), registered(""), "not known yet which devices"),
        (object(), path(), None, "not open yet"),
        (object(), path(), Registration("/dra.sock"), "has not asked for this plugin yet"),
        (object(), path(), registered("the kubelet refused"), "the kubelet refused"),
        (object(), path(), registered(""), ""),
        (object(), path(is_dra=False), None, "does not know all devices yet"),
        (None, path(waits_for_others=True), None, ""),
    ],
)
def test_it_is_ready_when_the_kubelet_has_accepted_this_very_process(
    inventory: object, node_path: Any, registration: Registration | None, why: str
) -> None:
    said = Readiness(cluster(inventory), node_path, node(), DATA, registration).why_not()

    assert said == "" if not why else why in said


def test_it_is_not_ready_beside_what_a_newer_driver_prepared() -> None:
    newer, lost = replace(prepared(a_reference(1)), version=2), lost_claim(ClaimUid("u-2"), BOOT)

    def why_not(claim: PreparedClaim) -> str:
        return Readiness(cluster(object()), path(), node(claim), DATA, registered("")).why_not()

    assert "claim-1" in why_not(newer)
    assert "is of version 2, and this driver reads 1: a newer driver prepared it" in why_not(newer)
    assert why_not(lost) == ""


def test_it_is_not_ready_while_cdi_files_cannot_be_written() -> None:
    unwritable = node(folder_problem="/var/run/cdi was removed on the node")

    why = Readiness(cluster(object()), path(), unwritable, DATA, registered("")).why_not()

    assert why.startswith(
        "CDI files cannot be written: /var/run/cdi was removed on the node. The driver prepares no"
    )


def test_device_metadata_that_cannot_be_written_has_a_sentence_of_its_own() -> None:
    unwritable = node(metadata_problem="/metadata: No space left on device")

    why = Readiness(cluster(object()), path(), unwritable, DATA, registered("")).why_not()

    assert why.startswith("Device metadata cannot be written: /metadata: No space left on device.")


def test_it_is_not_ready_while_it_is_not_known_which_claims_are_prepared() -> None:
    unread = node(rescue_problem="x.json was no list of claims in JSON")

    why = Readiness(cluster(object()), path(), unread, DATA, registered("")).why_not()

    assert "in /plugins/moorage.dev, x.json was no list of claims in JSON. The driver" in why
    assert "Drain the node before you remove it" in why


def test_beside_device_plugins_it_is_ready_once_the_kubelet_was_told_of_all() -> None:
    readiness = Readiness(cluster(object()), path(is_dra=False), node(), DATA)
    readiness.introduced = lambda: True
    assert readiness.why_not() == ""

    readiness.introduced = lambda: False  # A device that has just been plugged.
    assert readiness.why_not() == ""
