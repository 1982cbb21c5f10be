"""Ways to the cluster: through kubectl, and by a client of its own where kubectl has none."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.fakes.listed_cluster import FakeCluster, fake_cluster
from tests.fakes.scripted_apiserver import kubeconfig_for
from tests.scheduler_plugin.asking.test_selected_looks import H200
from tests.scheduler_plugin.asking.test_selected_looks import objects as gpu_objects
from tests.scheduler_plugin.builders import a_queue_object
from tests.scheduler_plugin.kubectl.snapshots import RUN, a_file, ask
from tests.scheduler_plugin.kubectl.test_live import a_cluster, a_deployment

NO_KUBECTL = {"PATH": ""}
HEAVY = ("aiohttp", "asyncio", "kubernetes", "prometheus_client", "pydantic", "rich", "ssl")
IMPORTED = f"""
import sys
from scheduler_plugin.kubectl.commands import main
status = main()
print([module for module in {HEAVY} if module in sys.modules], file=sys.stderr)
sys.exit(status)
"""
VIEWS = [
    ("queues",),
    ("queues", "-l", "a=b"),
    ("claims",),
    ("claims", "-A"),
    ("charge", "vision"),
    ("devices", "-o", "wide"),
    ("handlers",),
    ("why", "b"),
    ("simulate", "--without-device", "cam-1"),
    ("version",),
]


@pytest.mark.parametrize("words", VIEWS)
async def test_both_ways_tell_the_same(words: tuple[str, ...], tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        through_kubectl = await cluster.ask(*words)
        asked = sorted(map(unquote, cluster.asked))
        cluster.asked.clear()
        alone = await cluster.ask(*words, **NO_KUBECTL)

    assert through_kubectl == alone
    assert asked == sorted(map(unquote, cluster.asked))
    assert asked


@pytest.mark.parametrize("words", [view for view in VIEWS if view[0] != "simulate"])
async def test_a_call_through_kubectl_imports_nothing_that_it_does_not_use(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Imports are what a call spends its time on."""
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        _, _, err = await cluster.ask(*words, run=IMPORTED)
        _, _, alone = await cluster.ask("queues", run=IMPORTED, **NO_KUBECTL)

    assert err.splitlines()[-1] == "[]"
    assert "aiohttp" in alone


@pytest.mark.parametrize("mode", ["ends", "slow", ""])
async def test_a_kubectl_that_ends_or_is_slow_is_no_fault(mode: str, tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        status, out, err = await cluster.ask("queues", FAKE_KUBECTL=mode)

    assert (status, err) == (0, "")
    assert "vision" in out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be used: there is no such file"),
        ("{", "cannot be used"),
        ("current-context: ''\n# server: http://127.0.0.1:1", "cannot be used"),
    ],
)
@pytest.mark.parametrize("environment", [{}, {"FAKE_KUBECTL": "ends"}, NO_KUBECTL])
async def test_a_kubeconfig_that_is_of_no_use_is_our_sentence(
    text: str | None, sentence: str, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "damaged"
    if text is not None:
        file.write_text(text)
    cluster = FakeCluster({}, kubeconfig=file)

    status, out, err = await cluster.ask("queues", **environment)

    assert (status, out) == (2, "")
    assert err.startswith(f"kubectl moorage queues: kubeconfig {file} {sentence}")
    assert "kubectl's own words" not in err


async def test_without_a_current_context_no_server_is_asked(tmp_path: Path) -> None:
    """One on this machine would be, which may be any; the fake kubectl asks the file's."""
    async with fake_cluster(tmp_path, FakeCluster({})) as cluster:
        text = cluster.kubeconfig.read_text()
        cluster.kubeconfig.write_text(text.replace("current-context: fake\n", ""))
        status, out, err = await cluster.ask("queues")

    assert (status, out, cluster.asked) == (2, "", [])
    assert "cannot be used" in err


@pytest.mark.parametrize("environment", [{}, NO_KUBECTL])
async def test_a_kubeconfig_that_cannot_be_looked_at_is_our_sentence(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """As in a folder that may not be entered; a path that is too long is one for root, too."""
    cluster = FakeCluster({}, kubeconfig=tmp_path / ("a" * 300))

    status, out, err = await cluster.ask("queues", **environment)

    assert (status, out) == (2, "")
    assert err.endswith("cannot be used: there is no such file\n")
    assert "Traceback" not in err


async def test_a_kubeconfig_may_be_a_pipe(tmp_path: Path) -> None:
    """As that of `KUBECONFIG=<(vault …)`: what reads it second finds nothing."""
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        text, cluster.kubeconfig = cluster.kubeconfig.read_text(), tmp_path / "pipe"
        os.mkfifo(cluster.kubeconfig)
        writing = asyncio.create_task(asyncio.to_thread(cluster.kubeconfig.write_text, text))
        status, out, err = await asyncio.wait_for(cluster.ask("claims"), 20)
        await writing

    assert (status, err) == (0, "")
    assert "cam" in out


async def test_a_cluster_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    cluster = FakeCluster({}, kubeconfig=kubeconfig_for(tmp_path, 1))

    status, out, err = await cluster.ask("queues")

    assert (status, out) == (2, "")
    assert err == (
        "kubectl moorage queues: GET /apis/apps/v1/namespaces/moorage-system/deployments/"
        "moorage-scheduler: dial tcp 127.0.0.1: connect: connection refused\n"
    )


async def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    async with fake_cluster(tmp_path, a_cluster()) as cluster:
        told = cluster.kubeconfig.read_text()
        assert "cluster: fake\n" in told
        cluster.kubeconfig.write_text(
            told.replace("    cluster: fake\n", "    cluster: fake\n    namespace: team\n", 1)
        )
        ways = [await cluster.ask("claims", **way) for way in ({}, NO_KUBECTL)]

    assert ways[0] == ways[1]
    assert "team" in ways[0][1]
    assert "default" not in ways[0][1]


async def test_a_pod_asks_its_own_cluster_and_no_kubectl(tmp_path: Path) -> None:
    cluster = FakeCluster({}, kubeconfig=kubeconfig_for(tmp_path, 1))

    status, _, err = await cluster.ask(
        "queues", run=RUN, KUBECONFIG="", KUBERNETES_SERVICE_HOST="127.0.0.1"
    )

    assert status == 2
    assert "the pod's ServiceAccount cannot be used" in err


BOTH = pytest.mark.parametrize("environment", [{}, NO_KUBECTL], ids=["kubectl", "alone"])


def a_gpu_cluster(entry: dict[str, Any]) -> FakeCluster:
    return FakeCluster({**gpu_objects(entry), "deployments": [a_deployment()]})


@BOTH
async def test_selectors_are_evaluated_on_both_ways(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with fake_cluster(tmp_path, a_gpu_cluster(H200)) as cluster:
        status, out, err = await cluster.ask("queues", "-o", "json", **environment)

    assert (status, err) == (0, "")
    assert {row["device_class"]: row["usage"] for row in json.loads(out)}["h200"] == 1


@BOTH
async def test_a_simulated_queue_counts_what_its_new_selector_selects(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """No Queue of the cluster needs attributes of devices yet."""
    new = {"kind": "Queue", **a_queue_object("vision", resources=[H200])}
    file = tmp_path / "queue.yaml"
    file.write_text(json.dumps(new))
    async with fake_cluster(tmp_path, a_gpu_cluster({"deviceClass": "gpu"})) as cluster:
        words = ("simulate", "--queue", str(file), "-o", "json")
        status, out, err = await cluster.ask(*words, **environment)

    assert (status, err) == (0, "")
    found = {
        change["after"]["device_class"]: change["after"]["usage"]
        for change in json.loads(out)["queues"]
        if change["after"] is not None
    }
    assert found["h200"] == 1
    assert json.loads(out)["notes"] == []


async def test_a_snapshot_without_attributes_says_that_selectors_count_every_device(
    tmp_path: Path,
) -> None:
    new = {"kind": "Queue", **a_queue_object("vision", resources=[H200])}
    queue, file = tmp_path / "queue.yaml", a_file(tmp_path, gpu_objects({"deviceClass": "gpu"}))
    queue.write_text(json.dumps(new))

    done = ask("simulate", "--snapshot", str(file), "--queue", str(queue))

    assert (done.returncode, done.stderr) == (0, "")
    assert "- -> 2" in done.stdout
    assert "count every device: the snapshot has no attributes of devices" in done.stdout
