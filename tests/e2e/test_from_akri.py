"""`moorage-driver from-akri` beside a release of Akri's, as INSTALL.md says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from local_cluster.helm import run_helm
from tests.e2e import documented

EDGE = "edge"
KEPT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str, kind: str) -> dict[str, Any]:
    """As Akri's is where it differs from Moorage's: nothing of the status."""
    schema = {"type": "object", "properties": {"spec": KEPT}}
    version = {"name": "v0", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.akri.sh"},
        "spec": {
            "group": "akri.sh",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def labels(component: str) -> dict[str, str]:
    return {"app.kubernetes.io/part-of": "akri", "app.kubernetes.io/name": f"akri-{component}"}


def agent() -> dict[str, Any]:
    template = {
        "metadata": {"labels": labels("agent")},
        "spec": {"containers": [{"name": "agent", "image": "agent"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "akri-agent-daemonset", "labels": labels("agent")},
        "spec": {"selector": {"matchLabels": labels("agent")}, "template": template},
    }


def configuration(name: str, **more: Any) -> dict[str, Any]:
    handler = {"name": "debugEcho", "discoveryDetails": "descriptions: [foo0]\nshared: true\n"}
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": EDGE},
        "spec": {"discoveryHandler": handler, "capacity": 2, **more},
    }


def instance() -> dict[str, Any]:
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Instance",
        "metadata": {"name": "camera-8120fe", "namespace": EDGE},
        "spec": {
            "configurationName": "camera",
            "cdiName": "akri.sh/camera=8120fe",
            "capacity": 2,
            "shared": True,
            "nodes": ["node-a"],
            "deviceUsage": {"camera-8120fe-0": "C:camera-0:node-a"},
            "brokerProperties": {},
        },
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Cluster]:
    """An API server with a release of a chart like Akri's, and objects that Akri's parts wrote."""
    settings = ClusterSettings(work_dir=tmp_path / "cluster", nodes=0, parts=CONTROL_PLANE)
    own = Cluster.up(settings)
    try:
        install_akri(own, tmp_path / "akri")
        yield own
    finally:
        own.down()


def install_akri(cluster: Cluster, chart: Path) -> None:
    files = {
        "Chart.yaml": {"apiVersion": "v2", "name": "akri", "version": "0.13.26"},
        "crds/c.yaml": definition("configurations", "Configuration"),
        "crds/i.yaml": definition("instances", "Instance"),
        "templates/agent.yaml": agent(),
        "templates/configuration.yaml": configuration("of-the-chart"),
    }
    for name, body in files.items():
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(yaml.safe_dump(body))
    options = (f"--namespace={EDGE}", "--create-namespace", "--set=agent.host.udev=/run/udev")
    run_helm("install", "akri", str(chart), *options, kubeconfig=cluster.kubeconfig)
    camera = configuration(
        "camera", brokerSpec={"brokerPodSpec": {"containers": [{"name": "main"}]}}
    )
    camera["metadata"]["finalizers"] = ["node-a"]
    cluster.apply([camera, instance()])


def specs(cluster: Cluster) -> dict[str, Any]:
    found = [*cluster.list("configurations.akri.sh"), *cluster.list("instances.akri.sh")]
    return {body["metadata"]["name"]: body["spec"] for body in found}


def test_a_look_at_akri_says_what_changes_and_its_objects_stay(
    server: Cluster, tmp_path: Path
) -> None:
    documented.prepare(tmp_path)
    before = specs(server)

    first = documented.run(server, "From Akri", tmp_path)
    second = documented.run(server, "From Akri", tmp_path)

    for sentence in (
        "Definition configurations.akri.sh\n  to do    It is Akri's and has no status",
        "DaemonSet edge/akri-agent-daemonset\n  changed  It goes with Akri",
        "Helm release edge/akri, chart akri 0.13.26\n"
        "  to do    helm uninstall akri --namespace edge --no-hooks;",
        "  changed  agent.host.udev: say driver.node.host.udev.",
        "Configuration edge/camera\n"
        "  kept     akri.sh/camera, capacity 2; 1 Instance: camera-8120fe.",
        "  kept     1 of 2 slots are held and stay so.",
        "  to do    Moorage makes its brokers (0 pods now) and Services once brokers.namespaces",
        "  to do    Once the agents are gone: kubectl patch akric camera --namespace edge",
        "Configuration edge/of-the-chart\n",
        "  to do    Helm deletes it with the release akri",
    ):
        assert sentence in first, first
    assert "Definition configurations.akri.sh" not in second
    assert specs(server) == before
