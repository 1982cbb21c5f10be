"""Fixtures for pytest: a whole cluster, an API server alone, and a namespace for each test.

    MOORAGE_CLUSTER_DIR   use the cluster in this folder (made if missing) and leave it up
    MOORAGE_KEEP          leave clusters up that the tests made
    MOORAGE_ARTIFACTS     where logs of failed tests go; default .artifacts

Without them each test session makes clusters of its own and takes them down at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from local_cluster import namespaces
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from local_cluster.progress import say

ROOT = Path(__file__).resolve().parents[3]


def artifacts_dir() -> Path:
    return Path(os.environ.get("MOORAGE_ARTIFACTS", ROOT / ".artifacts"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster with two nodes for all stories."""
    own = os.environ.get("MOORAGE_CLUSTER_DIR")
    settings = ClusterSettings(work_dir=Path(own) if own else _session_dir("e2e"))
    yield from _kept(settings, keep=own is not None)


@pytest.fixture(scope="session")
def apiserver() -> Iterator[Cluster]:
    """Etcd and the API server alone: up in seconds, and its parts may be killed."""
    settings = ClusterSettings(work_dir=_session_dir("api"), nodes=0, parts=CONTROL_PLANE)
    yield from _kept(settings, keep=False)


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
    """Collect while everything still stands: fixtures of the test are torn down afterwards."""
    report = yield
    if report.failed and report.when in ("setup", "call"):
        for found in _clusters_of(item):
            target = artifacts_dir() / re.sub(r"[^\w.-]+", "-", item.nodeid) / found.work_dir.name
            found.collect(target)
            report.sections.append(("local cluster", f"logs and events are in {target}"))
    return report


def _clusters_of(item: pytest.Item) -> list[Cluster]:
    values = getattr(item, "funcargs", {}).values()
    return [value for value in values if isinstance(value, Cluster)]


def _session_dir(kind: str) -> Path:
    """Of this test run alone, and of this worker, so that runs do not meet."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return ROOT / f".cluster-{kind}-{worker}-{os.getpid()}"


def _kept(settings: ClusterSettings, *, keep: bool) -> Iterator[Cluster]:
    found = Cluster.up(settings)
    try:
        yield found
    finally:
        if keep or "MOORAGE_KEEP" in os.environ:
            say(f"left up: {found.work_dir}")
        else:
            found.down(purge=True)
