"""Fixtures for pytest: a whole cluster, an API server alone, and a namespace for each test.

    MOORAGE_CLUSTER_DIR   use the cluster in this folder (made if missing) and leave it up
    MOORAGE_KUBERNETES    which Kubernetes the stories are told on; default the newest
    MOORAGE_KEEP          leave clusters up that the tests made
    MOORAGE_ARTIFACTS     where logs of failed tests go; default .artifacts

Without them each test session makes clusters of its own and takes them down at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from local_cluster import lifecycle, namespaces
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings, LocalClusterError
from local_cluster.layout import layout_of
from local_cluster.progress import say
from local_cluster.records import load_record

ROOT = Path(__file__).resolve().parents[3]
FAILED = pytest.StashKey[bool]()


def artifacts_dir() -> Path:
    return Path(os.environ.get("MOORAGE_ARTIFACTS", ROOT / ".artifacts"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster with two nodes for all stories."""
    own = os.environ.get("MOORAGE_CLUSTER_DIR")
    version = os.environ.get("MOORAGE_KUBERNETES", ClusterSettings.kubernetes)
    made = ClusterSettings(work_dir=session_dir("e2e"), kubernetes=version)
    yield from kept(settings_in(Path(own)) if own else made, keep=own is not None)


@pytest.fixture(scope="session")
def apiserver() -> Iterator[Cluster]:
    """Etcd and the API server alone: up in seconds, and its parts may be killed."""
    settings = ClusterSettings(work_dir=session_dir("api"), nodes=0, parts=CONTROL_PLANE)
    yield from kept(settings, keep=False)


@pytest.fixture(scope="session")
def used_namespaces(cluster: Cluster) -> Iterator[list[str]]:
    """Names of all namespaces that tests had; at the end they are really gone."""
    names: list[str] = []
    yield names
    namespaces.wait_deleted(cluster, names)


@pytest.fixture
def namespace(
    cluster: Cluster, used_namespaces: list[str], request: pytest.FixtureRequest
) -> Iterator[str]:
    """A namespace of this test alone. Pods and claims in it are gone before the next test."""
    name = namespaces.name_for(request.node.name, f"{os.getpid()}-{len(used_namespaces)}")
    namespaces.create(cluster, name)
    used_namespaces.append(name)
    try:
        yield name
        namespaces.empty(cluster, name)
    finally:
        namespaces.delete(cluster, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collect while everything still stands; mend what the failed test left broken."""
    report = yield
    clusters = [value for value in _arguments_of(item) if isinstance(value, Cluster)]
    if report.failed and report.when != "teardown":
        item.stash[FAILED] = True
        for cluster in clusters:
            report.sections.append(("local cluster", _explain(cluster, item.nodeid)))
    if report.when == "teardown" and item.stash.get(FAILED, False):
        for cluster in clusters:
            mend(cluster)
    return report


def _arguments_of(item: pytest.Item) -> Iterable[object]:
    return getattr(item, "funcargs", {}).values()


def _explain(cluster: Cluster, test: str) -> str:
    target = artifacts_dir() / re.sub(r"[^\w.-]+", "-", test) / cluster.work_dir.name
    try:
        cluster.collect(target)
    except (LocalClusterError, OSError) as error:
        return f"logs are incomplete in {target}: {error}"
    return f"logs and events are in {target}"


def mend(cluster: Cluster) -> None:
    """The next test must not fail because this one had killed a part; after the last there is none.

    Its teardown took the cluster down, and nobody would do so again.
    """
    if not cluster.work_dir.exists():
        return
    try:
        cluster.reconfigure()
    except LocalClusterError as error:
        say(f"still broken: {error}")


def session_dir(kind: str) -> Path:
    """Of this test run alone, and of this worker, so that runs do not meet."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    prefix = f".cluster-{kind}-{worker}-"
    for abandoned in ROOT.glob(f"{prefix}*"):
        if not Path("/proc", abandoned.name.removeprefix(prefix)).exists():
            say(f"taking down what a killed test run left: {abandoned}")
            lifecycle.down(abandoned, purge=True)
    return ROOT / f"{prefix}{os.getpid()}"


def settings_in(work_dir: Path) -> ClusterSettings:
    """Of the cluster that is there: tests that use it must not make it another one."""
    record = load_record(layout_of(work_dir))
    return record.settings if record else ClusterSettings(work_dir=work_dir)


def kept(settings: ClusterSettings, *, keep: bool) -> Iterator[Cluster]:
    try:
        found = Cluster.up(settings)
    except LocalClusterError:
        # The logs stay, since the error names them.
        lifecycle.down(settings.work_dir)
        raise
    try:
        yield found
    finally:
        if keep or "MOORAGE_KEEP" in os.environ:
            say(f"left up: {found.work_dir}")
        else:
            found.down(purge=True)
