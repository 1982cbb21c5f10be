"""A cluster of its own for chaos: its nodes share no network, and their disks can be filled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from local_cluster.api import Cluster, ClusterSettings
from moorage_demo import installation, release
from tests.chaos.faults import small_disks
from tests.chaos.kai_groups import POD_GROUPS
from tests.chaos.objects import DRIVER, VENDORS
from tests.chaos.scene import HAVE_WORKLOADS, WORKLOAD_GATES, WORKLOADS_VERSION
from tests.chaos.vendors import HAVE_MEASURES


@contextmanager
def chaos_cluster(
    work_dir: Path, kubernetes: str = ClusterSettings.kubernetes
) -> Iterator[Cluster]:
    """It has Moorage in pods, as users install it, and KAI's PodGroups."""
    settings = ClusterSettings(
        work_dir=work_dir, kubernetes=kubernetes, own_networks=True, parts=installation.PARTS
    )
    options: tuple[str, ...] = ()
    if kubernetes in HAVE_WORKLOADS:
        served = {WORKLOADS_VERSION: "true"}
        settings = replace(settings, feature_gates=WORKLOAD_GATES, runtime_config=served)
        # Without them the chart's kube-scheduler reserves the claim for each pod.
        options = tuple(f"--set=scheduler.featureGates.{gate}=true" for gate in WORKLOAD_GATES)
    if kubernetes in HAVE_MEASURES:
        options += (f"--set=accounting.drivers={{{','.join((DRIVER, *VENDORS))}}}",)
    cluster = Cluster.up(settings)
    try:
        small_disks(cluster)
        cluster.apply(POD_GROUPS)
        release.install_release(cluster, *options)
        yield cluster
    finally:
        cluster.down(purge=True)
