"""What `kubectl moorage import` prints, applied to a real API server as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from local_cluster.api import Cluster
from tests.deploy.documents import CRDS
from tests.e2e.documented import DOCS, blocks
from tests.scheduler_plugin.importing.kai.test_accounted_resources import (
    MEMORY,
    OF_CLASS,
    of_attributes,
    queue,
    resource,
)
from tests.scheduler_plugin.importing.kueue.test_kueue_queues import a_cluster_queue, a_group
from tests.scheduler_plugin.importing.kueue.test_resources import a_mapping, a_source, configured
from tests.scheduler_plugin.importing.translations import GPU_CLASS
from tests.scheduler_plugin.kubectl.snapshots import ask

FILES = {
    text.splitlines()[0].removeprefix("# "): text
    for text in blocks("yaml", (DOCS / "import.md").read_text())
    if text.startswith("# ")
}
"""The files of the page's examples."""

ACCOUNTED = [
    resource("gpu", OF_CLASS, limit="32"),
    resource("gpu-gb200", of_attributes(productName={"string": "GB200"})),
    resource("gpu-memory", {**OF_CLASS, **MEMORY}),
    queue("research"),
    queue("team-a", "research", gpu="16", gpu_gb200="4", gpu_memory="1.5Ti"),
]
MAPPED = [
    configured(
        a_mapping("gpu.memory", GPU_CLASS, sources=[a_source("counter", "memory")]),
        a_mapping("example.com/memory", "shared", sources=[a_source("capacity", "memory")]),
        a_mapping("example.com/gpu", GPU_CLASS),
    ),
    a_cluster_queue(
        resourceGroups=[
            a_group("800Gi", resource="gpu.memory"),
            a_group("1.5Gi", resource="example.com/memory"),
            a_group(8),
        ]
    ),
]


@pytest.fixture(scope="module")
def server(apiserver: Cluster) -> Cluster:
    apiserver.kubectl("apply", "-f", str(CRDS))
    apiserver.kubectl("wait", "--for=condition=Established", "crd", "--all")
    return apiserver


@pytest.mark.parametrize(
    ("texts", "queues"),
    [
        ([FILES["kai.yaml"]], 2),
        ([FILES["configuration.yaml"], FILES["kueue.yaml"]], 3),
        (ACCOUNTED, 2),
        (MAPPED, 1),
    ],
    ids=["kai", "kueue", "accounted-resources", "device-class-mappings"],
)
def test_the_api_server_admits_each_queue_that_is_printed(
    server: Cluster, tmp_path: Path, texts: list[str], queues: int
) -> None:
    """`apply` validates strictly: it refuses a field that the definition does not have."""
    file = tmp_path / "found.yaml"
    file.write_text("\n---\n".join(texts))

    printed = ask("import", str(file), "--gpu-class", GPU_CLASS).stdout
    done = server.kubectl("apply", "--dry-run=server", "-f", "-", stdin=printed)

    names = [one["metadata"]["name"] for one in yaml.safe_load_all(printed)]
    assert done.stdout.splitlines() == [
        f"queue.moorage.dev/{name} created (server dry run)" for name in names
    ]
    assert (len(names), done.stderr) == (queues, "")
