"""Moorage in the cluster, as a user would install it: image, definitions, manifests."""

from __future__ import annotations

from pathlib import Path

from local_cluster.api import Cluster
from local_cluster.image_build import build_image

ROOT = Path(__file__).parents[3]
NAMESPACE = "moorage-system"
WORKLOADS = ("daemonset/moorage-driver-node", "deployment/moorage-driver-shared")
ROLLOUT_SECONDS = 120


def install(cluster: Cluster) -> None:
    """Load the image, apply everything, and wait until all pods of the driver serve."""
    cluster.load_image(build_image(cluster.work_dir / "images", "moorage:local"))
    for manifest in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        cluster.apply(manifest)
    cluster.wait("crd/configurations.akri.sh", "condition=Established")
    for manifest in sorted((ROOT / "deploy/manifests").glob("*.yaml")):
        cluster.apply(manifest)
    for workload in WORKLOADS:
        timeout = f"--timeout={ROLLOUT_SECONDS}s"
        cluster.kubectl("rollout", "status", workload, "--namespace", NAMESPACE, timeout)
