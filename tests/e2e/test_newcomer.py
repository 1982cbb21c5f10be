"""The README as the only page that is known: from a checkout to a claim that is charged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local_cluster import lifecycle
from local_cluster.api import Cluster, ConditionTimeoutError, Node
from local_cluster.progress import say
from moorage_demo.installation import ROOT
from tests.e2e import documented, rights
from tests.e2e.documented import README

NOT_OF_A_CLONE = (".artifacts", ".cluster*", ".git", ".*_cache", ".hypothesis")
COMMANDS = 5
NOT_A_SHELLS = ("KUBECONFIG", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Those of `make test` are for its own jobs."""


@pytest.fixture(scope="module")
def checkout() -> Iterator[Path]:
    """As a clone, with the venv of this one, so that its packages are not fetched once more."""
    folder = ROOT.resolve() / f".cluster-newcomer-{os.getpid()}"
    folder.mkdir()
    for entry in ROOT.resolve().iterdir():
        if not any(entry.match(pattern) for pattern in NOT_OF_A_CLONE):
            (folder / entry.name).symlink_to(entry)
    try:
        yield folder
    finally:
        lifecycle.down(folder / ".cluster", purge=True)
        shutil.rmtree(folder)


def quick_start() -> list[str]:
    """The lines of the block, without what they say of themselves."""
    _, _, rest = README.partition("\n## Quick start\n")
    block = documented.blocks("", rest)[0]
    return [line.partition(" #")[0].strip() for line in block.splitlines()]


def typed(folder: Path, *lines: str) -> tuple[str, float]:
    """What the last line prints, and the seconds that all took; the shell knows of no cluster."""
    env = {name: value for name, value in os.environ.items() if name not in NOT_A_SHELLS}
    started = time.monotonic()
    done = subprocess.run(
        ("bash", "-euxc", "\n".join(lines)),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout, time.monotonic() - started


def test_five_commands_of_the_readme_lead_from_a_checkout_to_a_claim_that_is_charged(
    checkout: Path,
) -> None:
    lines = quick_start()
    assert len(lines) == COMMANDS
    assert lines[0] == "make install"

    said, seconds = typed(checkout, *lines)
    say(f"from `make install` to the first charge: {seconds:.0f} s")

    cluster = Cluster.open(checkout / ".cluster")
    assert said.splitlines()[-1].startswith("team ")
    cluster.wait_until("the queue is charged", lambda: usage(cluster) == {"team": {"echo": 1}})
    assert "kube-scheduler-moorage" not in cluster.parts
    rights.note(cluster.logs)


def usage(cluster: Cluster) -> dict[str, Any]:
    """Of each queue, as its status says."""
    found = cluster.list("queues")
    return {queue["metadata"]["name"]: queue.get("status", {}).get("usage") for queue in found}


def test_the_second_time_it_upgrades_and_pods_keep_their_devices(checkout: Path) -> None:
    cluster = Cluster.open(checkout / ".cluster")
    pod = cluster.get("pod", "first", namespace="default") or {}

    typed(checkout, "make install")

    found, _ = typed(
        checkout, "source .cluster/env", "helm list --namespace moorage-system --output json"
    )
    (release,) = json.loads(found)
    assert (release["status"], int(release["revision"])) == ("deployed", 2)
    again = cluster.get("pod", "first", namespace="default") or {}
    assert again["metadata"]["uid"] == pod["metadata"]["uid"]
    assert again["status"]["phase"] == "Running"


EVENTS = ("events", "events.events.k8s.io")
"""They end by themselves, an hour later."""

FOLDERS = ("/var/lib/kubelet", "/var/lib/akri", "/run/cdi")

SHARED = (
    "/run/cdi",
    "/var/lib/kubelet/plugins",
    "/var/lib/kubelet/plugins_registry",
    "/var/lib/kubelet/device-plugins",
)
"""Folders in which drivers write: a node without any has in them what its kubelet wrote."""

KUBELETS = ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION")


def test_no_trace_is_left_after_the_documented_commands(checkout: Path) -> None:
    """But claims of users, images, and what ends by itself."""
    cluster = Cluster.open(checkout / ".cluster")
    cluster.kubectl("label", "namespace", "default", "moorage.dev/queue=team")
    in_the_cluster, on_nodes = documented.blocks("sh", documented.section("Remove every trace"))
    # Here it is a mount of the node's, which goes with the cluster alone.
    on_nodes = on_nodes.replace("/var/lib/akri", "/var/lib/akri/*")
    assert named_moorage(cluster), "nothing was there to be removed"

    typed(checkout, "source .cluster/env", in_the_cluster)
    for node in cluster.nodes:
        node.exec(("sh", "-euxc", on_nodes))

    with suppress(ConditionTimeoutError):
        cluster.wait_until("nothing is named so", lambda: not named_moorage(cluster))
    assert named_moorage(cluster) == []
    kept = cluster.list("namespaces,resourceclaims")
    for body in kept:
        for field in ("labels", "annotations", "finalizers"):
            assert "moorage" not in json.dumps(body["metadata"].get(field, {})), body
    for node in cluster.nodes:
        cluster.wait_until(f"{node.name} keeps nothing", partial(keeps_nothing, node))
        assert left_in_shared_folders(node) == []
    rights.note(cluster.logs)


def keeps_nothing(node: Node) -> bool:
    find = f"find {' '.join(FOLDERS)} -name '*moorage*' 2>/dev/null || true"
    return node.exec(("sh", "-c", find)).stdout == ""


def left_in_shared_folders(node: Node) -> list[str]:
    """What drivers left there, whatever it is called."""
    find = f"find {' '.join(SHARED)} -mindepth 1 2>/dev/null || true"
    found = node.exec(("sh", "-c", find)).stdout.splitlines()
    return [path for path in found if Path(path).name not in KUBELETS]


def named_moorage(cluster: Cluster) -> list[str]:
    """Every object of every kind whose name or namespace says so."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--output=name").stdout.split()
    listed = ",".join(kind for kind in kinds if kind not in EVENTS)
    found = cluster.kubectl("get", listed, "--all-namespaces", "--output=json", check=False)
    if found.returncode != 0:  # A kind has gone in between.
        return [found.stderr]
    names = (
        f"{o['kind']} {o['metadata'].get('namespace', '')}/{o['metadata']['name']}"
        for o in json.loads(found.stdout)["items"]
    )
    return [name for name in names if "moorage" in name.lower()]
