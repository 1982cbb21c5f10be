"""The tutorial and the how-to pages, followed word for word on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from moorage_demo.disks import plugged_disk
from moorage_demo.release import install_release
from tests.e2e import documented, rights
from tests.e2e.charts import bare_cluster
from tests.e2e.documented import README
from tests.e2e.test_policies import POD_GROUP_CRD

PAGES = (documented.DOCS / "tutorial.md", *sorted((documented.DOCS / "how-to").glob("*.md")))
GROUPS = "crd/podgroups.scheduling.run.ai"
USB_STICKS = 'SUBSYSTEM=="block", KERNEL=="sd?", ENV{ID_BUS}=="usb"'
SAYING_ALL = (
    "--set=logFormat=json,scheduler.plugin.logLevel=DEBUG",
    "--set=webhook.logLevel=DEBUG",
)
"""As the page about logs wants them."""
KINDS = "queues.moorage.dev,akric,akrii,deviceclasses,resourceclaims"


@pytest.fixture(scope="module")
def installed() -> Iterator[Cluster]:
    """A cluster with Moorage's release, and KAI's PodGroups for the page about them."""
    with bare_cluster("documentation") as own:
        own.apply(POD_GROUP_CRD)
        own.kubectl("wait", GROUPS, "--for=condition=Established", "--timeout=30s")
        install_release(own, *SAYING_ALL)
        yield own
        rights.note(own.logs)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whoever_types_what_a_page_says_gets_what_it_says(
    page: Path, installed: Cluster, tmp_path: Path
) -> None:
    documented.follow(installed, page, tmp_path)

    left = [f"{o['kind']} {o['metadata']['name']}" for o in installed.list(KINDS)]
    assert left == []


def test_the_first_example_of_the_readme_runs_as_it_stands(
    installed: Cluster, tmp_path: Path
) -> None:
    """But that the disk is one that the test can plug."""
    assert README.count(USB_STICKS) == 1
    with plugged_disk(tmp_path / "disk", "hello") as disk:
        page = README.replace(USB_STICKS, f'SUBSYSTEM=="block", KERNEL=="{disk.name}"')
        documented.follow_text(installed, "README.md", page, tmp_path)
        installed.kubectl("delete", "pod/reader", "resourceclaim/my-disk", "--now")
        installed.kubectl("delete", "queue.moorage.dev/vision", "akric/disk")
        installed.wait_until("its Instance is gone", lambda: not installed.list("akrii"))
