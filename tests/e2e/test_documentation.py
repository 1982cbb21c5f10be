"""The tutorial and the how-to pages, followed word for word on a real cluster."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from local_cluster.cache import cache_dir
from local_cluster.image_archive import write_archive
from local_cluster.image_build import build_layers, read_sources
from local_cluster.image_debian import architecture
from local_cluster.image_layers import ensure_layer
from local_cluster.image_recipe import CHECKOUT
from moorage_demo.disks import plugged_disk
from moorage_demo.release import install_release
from tests.collector import Collector
from tests.e2e import documented, rights
from tests.e2e.charts import bare_cluster
from tests.e2e.test_policies import POD_GROUP_CRD

LOGS = documented.DOCS / "how-to/follow-a-pod.md"
HOW_TO = sorted((documented.DOCS / "how-to").glob("*.md"))
DISK = documented.DOCS / "how-to/claim-a-disk.md"
PAGES = (documented.DOCS / "tutorial.md", *(page for page in HOW_TO if page not in (LOGS, DISK)))
GROUPS = "crd/podgroups.scheduling.run.ai"
USB_STICKS = 'SUBSYSTEM=="block", KERNEL=="sd?", ENV{ID_BUS}=="usb"'
SAYING_ALL = (
    "--set=logFormat=json,scheduler.plugin.logLevel=DEBUG",
    "--set=webhook.logLevel=DEBUG",
)
"""As the page about logs wants them."""
KINDS = "queues.moorage.dev,akric,akrii,deviceclasses,resourceclaims"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Of traces, wherever a pod asks for it."""
    with Collector.listening("0.0.0.0") as collector:
        yield collector


@pytest.fixture(scope="module")
def installed(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Moorage's release, traces and all, and KAI's PodGroups for their page."""
    with bare_cluster("documentation") as own:
        own.apply(POD_GROUP_CRD)
        own.kubectl("wait", GROUPS, "--for=condition=Established", "--timeout=30s")
        own.load_image(image_with_traces(tmp_path_factory.mktemp("image")))
        endpoint = collector.endpoint.replace("0.0.0.0", own.host_address)
        install_release(own, *SAYING_ALL, f"--set=image.tag=traces,tracing.endpoint={endpoint}")
        yield own
        rights.note(own.logs)


def image_with_traces(folder: Path) -> Path:
    """What the page's Dockerfile makes, of the packages as they are installed here."""
    (file,) = documented.blocks("dockerfile", LOGS.read_text())
    names = re.findall(r"[a-z-]+", file.partition("--target /packages")[2].partition("FROM")[0])
    (target,) = re.findall(r"COPY --from=packages /packages/ /(\S+)", file)

    def fill(tree: Path) -> tuple[str, ...]:
        for name in names:
            for path in distribution(name).files or ():
                if ".." not in path.parts:
                    place = tree / target / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path.locate(), place)
        return tuple(names)

    layers = build_layers(read_sources(CHECKOUT), cache_dir())
    added = ensure_layer(folder, "traces", "0", fill)
    write_archive(folder / "traces.tar", "moorage:traces", architecture(), (*layers, added))
    return folder / "traces.tar"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whoever_types_what_a_page_says_gets_what_it_says(
    page: Path, installed: Cluster, tmp_path: Path
) -> None:
    documented.follow(installed, page, tmp_path)

    # The driver removes the class of a Configuration once it hears that this is gone.
    installed.wait_until("nothing is left", lambda: not installed.list(KINDS))


def test_a_pod_is_followed_through_logs_and_traces_as_its_page_says(
    installed: Cluster, collector: Collector, tmp_path: Path
) -> None:
    documented.follow(installed, LOGS, tmp_path)

    def traces() -> set[frozenset[str]]:
        spans = [(span.trace_id, span.name) for span in list(collector.spans)]
        return {frozenset(n for t, n in spans if t == trace) for trace, _ in spans}

    whole = {"Filter", "Bind", "NodePrepareResources"}
    installed.wait_until("one trace tells it all", lambda: whole in traces())
    assert collector.services == {"moorage-scheduler-plugin", "moorage-driver-node"}


def test_a_disk_is_claimed_as_its_page_says(installed: Cluster, tmp_path: Path) -> None:
    """But that the disk is one that the test can plug."""
    text = DISK.read_text()
    assert text.count(USB_STICKS) == 1
    with plugged_disk(tmp_path / "disk", "hello") as disk:
        page = text.replace(USB_STICKS, f'SUBSYSTEM=="block", KERNEL=="{disk.name}"')
        documented.follow_text(installed, DISK.name, page, tmp_path)
        installed.kubectl("delete", "pod/reader", "resourceclaim/my-disk", "--now")
        installed.kubectl("delete", "queue.moorage.dev/vision", "akric/disk")
        installed.wait_until("its Instance is gone", lambda: not installed.list("akrii"))
