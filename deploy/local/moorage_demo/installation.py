"""Moorage in a cluster, in an order that works; the demo and the tests install it alike."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from local_cluster.api import Cluster
from local_cluster.image_build import build_image
from local_cluster.scheduler_image import build_scheduler_image
from local_cluster.settings import PARTS_BESIDE_A_RELEASE

ROOT = Path(__file__).parents[3]
NAMESPACE = "moorage-system"
FOLDERS = ("deploy/crds", "deploy/policies", "deploy/manifests")
WORKLOADS = ("DaemonSet", "Deployment")
WEBHOOKS = ROOT / "deploy/webhook"
SECONDS = 120.0

PARTS = PARTS_BESIDE_A_RELEASE
"""Of a cluster whose second scheduler is ours, in pods, and no process of the cluster's."""

Object = dict[str, Any]

PROBE: Object = {
    "apiVersion": "moorage.dev/v1alpha1",
    "kind": "Queue",
    "metadata": {"name": "probe"},
    "spec": {"parent": "nobody-made-this"},
}
"""Only the webhook warns of a parent that does not exist."""


def install(cluster: Cluster) -> None:
    """Load the images, apply everything, and wait until all pods serve."""
    with ThreadPoolExecutor() as pool:
        images = pool.submit(load_images, cluster)
        install_objects(cluster)
        images.result()
    install_workloads(cluster)
    register_webhook(cluster)


def load_images(cluster: Cluster) -> Path:
    """What a user's nodes pull from a registry; returns the archive of Moorage's own image."""
    folder = cluster.work_dir / "images"
    own = build_image(folder)
    cluster.load_image(own)
    cluster.load_image(build_scheduler_image(folder, cluster.settings.kubernetes))
    return own


def install_objects(cluster: Cluster) -> None:
    """All that the components need to run: definitions, policies, accounts, roles."""
    found = list(objects_without(*WORKLOADS))
    cluster.apply(found)
    crds = (f"crd/{o['metadata']['name']}" for o in found if o["kind"].endswith("Definition"))
    cluster.kubectl("wait", *crds, "--for=condition=Established", f"--timeout={SECONDS}s")


def install_workloads(cluster: Cluster) -> None:
    """The components as pods; they serve when this returns."""
    cluster.apply(list(objects_of(*WORKLOADS)))
    for kind, name in workloads():
        options = ("--namespace", NAMESPACE, f"--timeout={SECONDS}s")
        cluster.kubectl("rollout", "status", f"{kind}/{name}".lower(), *options)


def register_webhook(cluster: Cluster) -> None:
    """Last, since from then on the API server asks a webhook that must be there to answer."""
    for manifest in sorted(WEBHOOKS.glob("*.yaml")):
        cluster.apply(manifest)
    cluster.wait_until("the API server trusts the webhook", lambda: is_trusted(cluster))


def workloads() -> Iterator[tuple[str, str]]:
    """Kind and name of all that runs in pods."""
    return ((o["kind"], o["metadata"]["name"]) for o in objects_of(*WORKLOADS))


def objects_of(*kinds: str) -> Iterator[Object]:
    return (found for found in _objects() if found["kind"] in kinds)


def objects_without(*kinds: str) -> Iterator[Object]:
    return (found for found in _objects() if found["kind"] not in kinds)


def _objects() -> Iterator[Object]:
    for folder in FOLDERS:
        for manifest in sorted((ROOT / folder).glob("*.yaml")):
            yield from yaml.safe_load_all(manifest.read_text())


def is_trusted(cluster: Cluster) -> bool:
    """The webhook has written who signs its certificate, and the API server has heard of it."""
    for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        found = cluster.get(kind, "moorage")
        entries = found["webhooks"] if found else ()
        if not all(entry["clientConfig"].get("caBundle") for entry in entries):
            return False
    answer = cluster.kubectl(
        *("create", "--dry-run=server", "-f", "-"), stdin=yaml.safe_dump(PROBE), check=False
    )
    return str(PROBE["spec"]["parent"]) in answer.stderr
