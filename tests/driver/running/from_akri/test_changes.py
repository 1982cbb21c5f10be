"""What `moorage-driver from-akri` says of a cluster in which Akri runs."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from driver.configurations.configurations import Verdict
from driver.running.from_akri.changes import as_text, changes
from driver.running.from_akri.configurations import Akri
from driver.running.from_akri.values import Release, akri_release, value_changes
from driver.running.shared.cluster_configurations import judged
from moorage_demo.release import CHART
from tests.driver.builders import a_configuration_object

HANDLERS = frozenset({"debugEcho", "onvif", "opcua", "udev"})
RELEASE = Release(name="akri", namespace="edge", chart="akri 0.13.26", values={})


def configured(name: str = "camera", **spec: Any) -> tuple[dict[str, Any], Verdict]:
    body = a_configuration_object(name, **spec)
    body["metadata"]["resourceVersion"] = "1"
    return body, judged(body, unique_devices_default=True).verdict


def handled(name: str, details: str = "", **more: Any) -> tuple[dict[str, Any], Verdict]:
    return configured(discoveryHandler={"name": name, "discoveryDetails": details, **more})


def instance(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    whole = {"configurationName": name.rpartition("-")[0], "capacity": 2, **spec}
    return {"metadata": metadata, "spec": whole}


def pod(name: str, resource: str, **labels: str) -> dict[str, Any]:
    containers = [{"resources": {"limits": {resource: 1}}}, {}]
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": containers}}


def workload(name: str, component: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": component}
    return {"metadata": {"name": f"{name}-daemonset", "namespace": "edge", "labels": labels}}


def definition(**version: Any) -> dict[str, Any]:
    return {"metadata": {"name": "configurations.akri.sh"}, "spec": {"versions": [version]}}


def said_of(akri: Akri) -> list[str]:
    akri = replace(akri, own_handlers=HANDLERS)
    return [f"{change.effect}: {change.said}" for change in changes(akri)]


def test_without_akri_there_is_nothing_to_say() -> None:
    assert as_text(changes(Akri())) == "Nothing of Akri's is in this cluster.\n"


def test_what_is_the_same_is_said_to_be_kept() -> None:
    akri = Akri(configurations=[configured()], instances=[instance("camera-8120fe")])

    assert said_of(akri) == ["kept: akri.sh/camera, capacity 1; 1 Instance: camera-8120fe."]


SAID = {
    "slots that are held": (
        Akri(
            configurations=[configured(capacity=2, uniqueDevices=True)],
            instances=[
                instance("camera-8120fe", deviceUsage={"camera-8120fe-0": "C:0:node-a"}),
                instance("camera-a19705", deviceUsage={"camera-a19705-1": "node-b"}),
            ],
        ),
        "kept: 2 of 4 slots are held and stay so.",
    ),
    "a slot whose holder nobody can read": (
        Akri(
            configurations=[configured()],
            instances=[instance("camera-8120fe", deviceUsage={"camera-8120fe-0": "?!"})],
        ),
        "to do: deviceUsage of camera-8120fe: ",
    ),
    "a capacity without uniqueDevices": (
        Akri(configurations=[configured(capacity=2)]),
        "changed: A node uses an Instance once through akri.sh/camera; uniqueDevices: false",
    ),
    "details of no sense": (
        Akri(configurations=[handled("udev", "udevRules: 7")]),
        "to do: It would not be accepted: spec.discoveryHandler.discoveryDetails",
    ),
    "a name that is too long for device ids": (
        Akri(configurations=[configured("c" * 60)]),
        "changed: The device plugin does not offer its devices. metadata.name",
    ),
    "a handler of one's own": (
        Akri(configurations=[handled("robots")]),
        "to do: Its devices are discovered while your handler 'robots' is registered in",
    ),
    "cameras": (
        Akri(configurations=[handled("onvif")]),
        "changed: Moorage contacts devices at the address that they answer from",
    ),
    "credentials in a Secret": (
        Akri(
            configurations=[
                handled(
                    "onvif",
                    discoveryProperties=[
                        {"name": "p", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
                    ],
                )
            ]
        ),
        "to do: The driver may not read 1 object: Secret default/s yet: moorage-driver permissions",
    ),
    "a pod that asks for any device": (
        Akri(configurations=[configured()], pods=[pod("a", "akri.sh/camera")]),
        "kept: Requests for any of its devices: 1 pod: default/a.",
    ),
    "a pod that asks for one device": (
        Akri(
            configurations=[configured()],
            instances=[instance("camera-8120fe")],
            pods=[pod("a", "akri.sh/camera-8120fe")],
        ),
        "kept: Requests for one certain device: 1 pod: default/a.",
    ),
    "a pod that asks for one device beside DRA": (
        Akri(
            configurations=[configured()],
            instances=[instance("camera-8120fe")],
            pods=[pod("a", "akri.sh/camera-8120fe")],
            has_dra=True,
        ),
        "to do: Requests for one certain device: 1 pod: default/a; in this cluster they need"
        " driver.shared.instanceClasses: true.",
    ),
    "brokers": (
        Akri(
            configurations=[configured(brokerSpec={"brokerPodSpec": {"containers": [{}]}})],
            pods=[
                pod(name, "akri.sh/x", controller="akri.sh", **{"akri.sh/configuration": "camera"})
                for name in "abcd"
            ],
        ),
        "to do: Moorage makes its brokers (4 pods: default/a, default/b, default/c, … now) and"
        " Services once brokers.namespaces has default.",
    ),
    "Services": (
        Akri(configurations=[configured(instanceServiceSpec={"ports": []})]),
        "to do: Moorage makes its brokers (0 pods now) and Services once brokers.namespaces has"
        " default.",
    ),
    "brokers that cannot be made": (
        Akri(configurations=[configured(brokerSpec={"brokerPodSpec": {"containers": []}})]),
        "to do: Its brokers would not be made: spec.brokerSpec.brokerPodSpec.containers: Expected"
        " `array` of length >= 1.",
    ),
    "an agent": (
        Akri(workloads=[("DaemonSet", workload("akri-agent"))]),
        "changed: It goes with Akri; the DaemonSet moorage-driver-node is in its place.",
    ),
    "a handler of one's own that Akri's chart runs": (
        Akri(workloads=[("DaemonSet", workload("robots", "discovery-handler"))]),
        "to do: A handler of yours: it goes with Akri's release",
    ),
    "a release whose hook deletes Configurations": (
        Akri(releases=[RELEASE]),
        "to do: helm uninstall akri --namespace edge --no-hooks; with its hook all",
    ),
    "a release without the hook": (
        Akri(releases=[replace(RELEASE, values={"cleanupHook": {"enabled": False}})]),
        "to do: helm uninstall akri --namespace edge before Moorage is installed.",
    ),
    "Akri's definition": (
        Akri(definitions=[definition(name="v0")]),
        "to do: It is Akri's and has no status, and Helm does not replace it: helm show crds",
    ),
    "what may not be read": (
        Akri(unread=["403 Forbidden; the report leaves out slots."]),
        "to do: 403 Forbidden; the report leaves out slots.",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_changes_is_said(case: str) -> None:
    akri, sentence = SAID[case]

    assert [said for said in said_of(akri) if said.startswith(sentence)], said_of(akri)


def test_our_own_definition_needs_nothing() -> None:
    assert said_of(Akri(definitions=[definition(name="v0", subresources={"status": {}})])) == []


def test_of_two_configurations_of_one_name_the_older_is_kept() -> None:
    older, younger = a_configuration_object(), a_configuration_object()
    younger["metadata"] |= {
        "namespace": "b",
        "uid": "2",
        "creationTimestamp": "2026-11-21T00:00:00Z",
    }
    both = [(body, _judged(body)) for body in (younger, older)]

    of_younger, *_ = said_of(Akri(configurations=both))

    assert "the older Configuration default/loop holds this name" in of_younger


def _judged(body: dict[str, Any]) -> Verdict:
    return judged(
        {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}},
        unique_devices_default=True,
    ).verdict


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({"finalizers": ["node-a"]}, "Once the agents are gone: kubectl patch akric camera "),
        (
            {"annotations": {"meta.helm.sh/release-name": "akri"}},
            "Helm deletes it with the release akri: keep it by kubectl get akric camera ",
        ),
    ],
)
def test_what_akri_left_on_an_object_is_said(metadata: Any, sentence: str) -> None:
    body, verdict = configured()
    body["metadata"] |= metadata

    said = said_of(Akri(configurations=[(body, verdict)], releases=[RELEASE]))

    assert [one for one in said if sentence in one]


def test_finalizers_of_moorages_are_left_alone() -> None:
    body, verdict = configured()
    body["metadata"]["finalizers"] = ["moorage.dev/slots"]

    assert "finalizers" not in str(said_of(Akri(configurations=[(body, verdict)])))


def packed(release: Any) -> dict[str, Any]:
    """As Helm keeps it in a Secret."""
    text = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    return {"data": {"release": base64.b64encode(text).decode()}}


def test_a_release_of_akris_is_read_from_its_secret() -> None:
    chart = {"metadata": {"name": "akri", "version": "0.13.26"}}
    values = {"cleanupHook": {"enabled": False}}
    release = {"name": "akri", "namespace": "edge", "chart": chart, "config": values}

    assert akri_release(packed(release)) == replace(RELEASE, values=values)
    assert akri_release(packed({**release, "chart": {"metadata": {"name": "other"}}})) is None


@pytest.mark.parametrize(
    "secret",
    [
        {},
        {"data": {"release": "?"}},
        {"data": {"release": "eA=="}},
        packed([]),
        packed({"chart": 1}),
    ],
)
def test_a_secret_that_keeps_no_release_is_none(secret: Any) -> None:
    assert akri_release(secret) is None


VALUES = {
    "agent": {
        "host": {"udev": "/run/udev", "kubeletDevicePlugins": "/k"},
        "resources": {"memoryLimit": "1Gi"},
    },
    "udev": {
        "configuration": {
            "enabled": True,
            "brokerPod": {"image": {"repository": "nginx"}},
            "createInstanceServices": False,
            "discoveryDetails": {"udevRules": []},
        },
        "discovery": {"enabled": True, "port": 1},
    },
    "kubernetesDistro": "k3s",
}


def test_each_value_is_told_by_its_new_name() -> None:
    assert dict(value_changes(VALUES)) == {
        "agent.host.udev": "say driver.node.host.udev",
        "agent.host.kubeletDevicePlugins": "say driver.node.host.devicePlugins",
        "agent.resources.memoryLimit": "say driver.node.resources, as a container has them",
        "udev.configuration.enabled": "udev.configuration.enabled",
        "udev.configuration.brokerPod.image.repository": (
            "udev.configuration.brokerPod.image.repository"
        ),
        "udev.configuration.createInstanceServices": "udev.configuration.createInstanceServices",
        "udev.configuration.discoveryDetails.udevRules": (
            "udev.configuration.discoveryDetails.udevRules"
        ),
        "udev.discovery.enabled": "udev.discovery.enabled",
        "udev.discovery.port": "there is none",
        "kubernetesDistro": "there is none",
    }


def test_names_that_are_said_to_be_the_same_are_values_of_the_chart() -> None:
    ours = yaml.safe_load((CHART / "values.yaml").read_text())
    same = [path for path, new in value_changes(ours) if path == new]

    assert {"imagePullSecrets", "prometheus.enabled", "onvif.configuration.capacity"} < {*same}
    for handler in ("custom", "debugEcho", "onvif", "opcua", "udev"):
        assert {f"{handler}.configuration.{name}" for name in ("enabled", "name")} < {*same}
