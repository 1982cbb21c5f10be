"""`make install`: what it makes of a cluster, of a release, and of the first Queue."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster.layout import layout_of
from local_cluster.programs import Binaries
from local_cluster.records import Record, save_record
from local_cluster.settings import CONTROL_PLANE, PARTS_BESIDE_A_RELEASE, ClusterSettings
from moorage_demo.install import FIRST_QUEUE, settings_for, welcome
from moorage_demo.release import after_interruption
from scheduler_plugin.objects.api import parse_queue
from tests.deploy.documents import EXAMPLES

ROOT = Path(__file__).parents[2]
FIRST = EXAMPLES / "first"


def recorded(settings: ClusterSettings) -> None:
    unused = Path("unused")
    binaries = Binaries(unused, unused, unused, unused, unused)
    record = Record(settings, IPv4Network("198.18.0.0/27"), binaries)
    save_record(layout_of(settings.work_dir), record)


def test_a_new_cluster_has_the_chart_s_scheduler_alone(tmp_path: Path) -> None:
    expected = ClusterSettings(work_dir=tmp_path, parts=PARTS_BESIDE_A_RELEASE)

    assert settings_for(tmp_path) == expected


def test_a_cluster_that_is_up_stays_what_it_is_but_for_a_scheduler_of_the_chart_s_name(
    tmp_path: Path,
) -> None:
    own = ClusterSettings(work_dir=tmp_path, nodes=1, scheduler_overlay={"parallelism": 4})
    recorded(own)

    settings = settings_for(tmp_path)

    assert (settings.nodes, settings.parts) == (1, PARTS_BESIDE_A_RELEASE)
    assert settings.scheduler_overlay == {}


def test_a_control_plane_alone_gets_nodes(tmp_path: Path) -> None:
    recorded(ClusterSettings(work_dir=tmp_path, nodes=0, parts=CONTROL_PLANE))

    assert settings_for(tmp_path) == ClusterSettings(
        work_dir=tmp_path, parts=PARTS_BESIDE_A_RELEASE
    )


@pytest.mark.parametrize(
    ("status", "command"),
    [
        ("deployed", None),
        ("failed", None),
        ("pending-install", ("uninstall", "moorage", "--no-hooks")),
        ("pending-upgrade", ("rollback", "moorage")),
        ("pending-rollback", ("rollback", "moorage")),
        ("uninstalling", ("rollback", "moorage", "3")),
    ],
)
def test_a_release_that_was_interrupted_is_ended_before_the_next_step(
    status: str, command: tuple[str, ...] | None
) -> None:
    assert after_interruption(status, 3) == command


def test_it_ends_by_saying_what_to_type() -> None:
    said = welcome(Path(".cluster"), 'export KUBECONFIG=/k\nexport PATH=/p:"$PATH"\n')

    typed = [line.strip() for line in said.splitlines()]
    assert "source .cluster/env" in typed
    assert "export KUBECONFIG=/k" in typed
    assert "kubectl apply -f deploy/examples/first/claim.yaml" in typed
    assert "make cluster-down CLUSTER=.cluster" in typed


def objects(text: str) -> dict[str, Any]:
    return {found["kind"]: found for found in yaml.safe_load_all(text)}


def test_the_first_objects_are_those_of_the_installation_s_page() -> None:
    """Which has them in one file, for clusters that `make install` has not made."""
    (page,) = re.findall(
        r"^```yaml\n(# first\.yaml.+?)^```",
        (ROOT / "INSTALL.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    files = objects((FIRST / "queue.yaml").read_text()) | objects(
        (FIRST / "claim.yaml").read_text()
    )

    assert files == objects(page)
    assert FIRST_QUEUE == FIRST / "queue.yaml"
    assert parse_queue(files["Queue"]).name == "team"
