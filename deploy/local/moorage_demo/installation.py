"""Moorage in a cluster, in an order that works; the demo and the tests install it alike."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from local_cluster.api import Certificate, Cluster
from local_cluster.image_build import build_image
from local_cluster.scheduler_image import build_scheduler_image
from local_cluster.settings import CLUSTER_PARTS
from webhook.api import registration

ROOT = Path(__file__).parents[3]
NAMESPACE = "moorage-system"
FOLDERS = ("deploy/crds", "deploy/policies", "deploy/manifests")
WORKLOADS = ("DaemonSet", "Deployment")
WEBHOOKS = ROOT / "deploy/webhook"
WEBHOOK_SECRET = "moorage-webhook-tls"
WEBHOOK_HOST = f"moorage-webhook.{NAMESPACE}.svc"
SECONDS = 120.0

PARTS = tuple(part for part in CLUSTER_PARTS if part != "kube-scheduler-moorage")
"""Of a cluster whose second scheduler is ours, in pods, and no process of the cluster's."""

Object = dict[str, Any]


def install(cluster: Cluster) -> None:
    """Load the images, apply everything, and wait until all pods serve."""
    with ThreadPoolExecutor() as pool:
        images = pool.submit(load_images, cluster)
        install_objects(cluster)
        images.result()
    install_workloads(cluster)
    register_webhook(cluster)


def load_images(cluster: Cluster) -> None:
    """What a user's nodes pull from a registry."""
    folder = cluster.work_dir / "images"
    cluster.load_image(build_image(folder))
    cluster.load_image(build_scheduler_image(folder, cluster.settings.kubernetes))


def install_objects(cluster: Cluster) -> None:
    """All that the components need to run: definitions, policies, accounts, roles, certificates."""
    found = list(objects_without(*WORKLOADS))
    cluster.apply(found)
    cluster.apply(_secret(webhook_certificate(cluster)))
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
    authority = webhook_certificate(cluster).ca.read_bytes()
    for manifest in sorted(WEBHOOKS.glob("*.yaml")):
        cluster.apply(registration(yaml.safe_load(manifest.read_text()), authority))


def workloads() -> Iterator[tuple[str, str]]:
    """Kind and name of all that runs in pods."""
    return ((o["kind"], o["metadata"]["name"]) for o in objects_of(*WORKLOADS))


def objects_of(*kinds: str) -> Iterator[Object]:
    return (found for found in _objects() if found["kind"] in kinds)


def objects_without(*kinds: str) -> Iterator[Object]:
    return (found for found in _objects() if found["kind"] not in kinds)


def webhook_certificate(cluster: Cluster) -> Certificate:
    """Signed by the cluster's CA for the name by which the API server calls the webhook."""
    return cluster.issue_certificate("moorage-webhook-service", (WEBHOOK_HOST,))


def _objects() -> Iterator[Object]:
    for folder in FOLDERS:
        for manifest in sorted((ROOT / folder).glob("*.yaml")):
            yield from yaml.safe_load_all(manifest.read_text())


def _secret(certificate: Certificate) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": WEBHOOK_SECRET, "namespace": NAMESPACE},
        "data": {
            "tls.crt": _encoded(certificate.certificate),
            "tls.key": _encoded(certificate.key),
        },
    }


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
