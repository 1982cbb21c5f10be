"""Bodies of what is made: those of Akri's controller, with the differences that `bodies` names."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import InstanceName, NodeName
from driver.brokers import bodies
from driver.brokers.bodies import REVISION
from driver.brokers.devices import Device
from driver.brokers.workloads import Workloads
from kube.kinds import TEMPLATES
from tests.driver.brokers.broker_builders import (
    CAMERA,
    NODE_A,
    SERVICE_SPEC,
    a_container,
    a_device,
    a_job_spec,
    a_made_template,
    a_pod_spec,
    some_jobs,
    some_workloads,
)

QUEUE = {"kueue.x-k8s.io/queue-name": "vision"}
OWNER = {
    "apiVersion": "akri.sh/v0",
    "kind": "Instance",
    "name": CAMERA,
    "uid": f"uid-of-{CAMERA}",
    "controller": True,
    "blockOwnerDeletion": False,
}
RESOURCE = f"akri.sh/{CAMERA}"
TEMPLATE = f"{CAMERA}-claim"


def test_a_pod_is_as_akri_makes_it() -> None:
    made = bodies.pod(some_workloads(), a_device(), NODE_A)

    name = f"node-a-{CAMERA}-pod"
    field = {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    resources = {"limits": {RESOURCE: "1"}, "requests": {RESOURCE: "1"}}
    assert made.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "plant",
            "labels": {
                "app": name,
                "controller": "akri.sh",
                "akri.sh/configuration": "akri-onvif",
                "akri.sh/instance": CAMERA,
                "akri.sh/target-node": "node-a",
            },
            "ownerReferences": [OWNER],
            "annotations": {REVISION: made.revision},
        },
        "spec": {"containers": [a_container(resources=resources)], "affinity": affinity},
    }


def test_a_job_is_as_akri_makes_it() -> None:
    made = bodies.job(some_jobs(job=a_job_spec(backoffLimit=2)), a_device())

    name = f"{CAMERA}-3-job"
    of_device = {"akri.sh/configuration": "akri-onvif", "akri.sh/instance": CAMERA}
    resources = {"limits": {RESOURCE: "1"}, "requests": {RESOURCE: "1"}}
    pod_spec = {"containers": [a_container(resources=resources)], "restartPolicy": "Never"}
    assert made.body == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "plant",
            "labels": {"app": name, "controller": "akri.sh", **of_device},
            "ownerReferences": [OWNER],
            "annotations": {REVISION: made.revision},
        },
        "spec": {
            "backoffLimit": 2,
            "template": {"metadata": {"labels": of_device}, "spec": pod_spec},
        },
    }


def test_the_service_of_an_instance_selects_its_brokers() -> None:
    spec = {**SERVICE_SPEC, "selector": {"tier": "edge"}}

    made = bodies.instance_service(some_workloads(instance_service=spec), a_device())

    name = f"{CAMERA}-svc"
    selector = {"tier": "edge", "controller": "akri.sh", "akri.sh/instance": CAMERA}
    assert made.body == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "plant",
            "labels": {"app": name, "controller": "akri.sh", "akri.sh/instance": CAMERA},
            "ownerReferences": [OWNER],
            "annotations": {REVISION: made.revision},
        },
        "spec": {"ports": [{"port": 80}], "type": "ClusterIP", "selector": selector},
    }


def test_the_service_of_a_configuration_selects_all_its_brokers() -> None:
    made = bodies.configuration_service(some_workloads(configuration_service=SERVICE_SPEC))

    of_configuration = {"akri.sh/configuration": "akri-onvif"}
    assert made.body == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "akri-onvif-svc",
            "namespace": "plant",
            "labels": {"app": "akri-onvif-svc", "controller": "akri.sh", **of_configuration},
            "ownerReferences": [
                {
                    **OWNER,
                    "kind": "Configuration",
                    "name": "akri-onvif",
                    "uid": "uid-of-configuration",
                }
            ],
            "annotations": {REVISION: made.revision},
        },
        "spec": {**SERVICE_SPEC, "selector": {"controller": "akri.sh", **of_configuration}},
    }


def test_services_select_what_pods_are_labelled() -> None:
    wanted = some_workloads(instance_service=SERVICE_SPEC, configuration_service=SERVICE_SPEC)
    device = a_device(f"{'c' * 60}-8120fe0a19705b3c")
    labels = bodies.pod(wanted, device, NODE_A).body["metadata"]["labels"]

    services = bodies.instance_service(wanted, device), bodies.configuration_service(wanted)

    for service in services:
        assert service.body["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize(
    ("count", "capacity"),
    [("1", {}), ("3", {"capacity": {"requests": {"slots": "3"}}})],
)
def test_a_template_claims_the_device_with_its_slots(count: str, capacity: dict[str, Any]) -> None:
    made = a_made_template(some_workloads(pod=a_pod_spec(count)), a_device(is_dra=True))

    expression = f'device.attributes["moorage.dev"].instance == "{CAMERA}"'
    exactly = {
        "deviceClassName": "akri-onvif",
        "selectors": [{"cel": {"expression": expression}}],
        **capacity,
    }
    assert made.resource == TEMPLATES
    assert made.body == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": TEMPLATE,
            "namespace": "plant",
            "labels": {
                "app": TEMPLATE,
                "controller": "akri.sh",
                "akri.sh/configuration": "akri-onvif",
                "akri.sh/instance": CAMERA,
            },
            "ownerReferences": [OWNER],
            "annotations": {REVISION: made.revision},
        },
        "spec": {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}},
    }


def test_a_long_name_is_selected_by_the_value_that_its_slices_have() -> None:
    device = a_device(f"{'c' * 60}-8120fe0a19705b3c", is_dra=True)

    made = a_made_template(some_workloads(), device)

    request = made.body["spec"]["spec"]["devices"]["requests"][0]
    value = request["exactly"]["selectors"][0]["cel"]["expression"].split('"')[3]
    assert len(value) == 64
    assert value.startswith("c" * 53)


@pytest.mark.parametrize(
    ("wanted", "device"),
    [
        pytest.param(some_workloads(), a_device(), id="the device plugin"),
        pytest.param(
            some_workloads(pod={"containers": [{}]}), a_device(is_dra=True), id="no device"
        ),
        pytest.param(some_workloads(pod=None), a_device(is_dra=True), id="no brokers"),
    ],
)
def test_without_a_claim_there_is_no_template(wanted: Workloads, device: Device) -> None:
    assert bodies.claim_template(wanted, device) is None


@pytest.mark.parametrize("wanted", [some_workloads(), some_jobs()])
def test_on_dra_pods_name_the_template_of_their_device(wanted: Workloads) -> None:
    device = a_device(is_dra=True)
    made = bodies.job(wanted, device) if wanted.job else bodies.pod(wanted, device, NODE_A)
    spec = made.body["spec"]["template"]["spec"] if wanted.job else made.body["spec"]

    names = [entry["resourceClaimTemplateName"] for entry in spec["resourceClaims"]]

    assert names == [a_made_template(wanted, device).name]
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "broker-device"}]}


def test_pods_and_jobs_have_the_queue_of_the_configuration() -> None:
    wanted = some_workloads(labels={**QUEUE, "app": "mine", "controller": "mine"})

    labels = bodies.pod(wanted, a_device(), NODE_A).body["metadata"]["labels"]

    assert labels.items() >= QUEUE.items()
    assert labels["controller"] == "akri.sh"
    assert labels["app"] == f"node-a-{CAMERA}-pod"


def test_labels_of_the_jobs_template_come_before_those_of_the_configuration() -> None:
    own = {"kueue.x-k8s.io/queue-name": "own", "akri.sh/instance": "mine"}
    job = a_job_spec()
    job["template"]["metadata"] = {"labels": own, "annotations": {"a": "b"}}

    made = bodies.job(some_jobs(job=job, labels={**QUEUE, "line": "1"}), a_device())

    metadata = made.body["spec"]["template"]["metadata"]
    assert made.body["metadata"]["labels"].items() >= {**QUEUE, "line": "1"}.items()
    assert metadata["annotations"] == {"a": "b"}
    assert metadata["labels"] == {
        "kueue.x-k8s.io/queue-name": "own",
        "line": "1",
        "akri.sh/configuration": "akri-onvif",
        "akri.sh/instance": CAMERA,
    }


def test_a_local_devices_pod_is_named_without_its_node() -> None:
    made = bodies.pod(some_workloads(), a_device(shared=False), NODE_A)

    assert made.name == f"{CAMERA}-pod"


def test_a_longer_nodes_label_is_cut_and_its_affinity_is_not() -> None:
    node = NodeName(f"{'n' * 60}.example.com")

    body = bodies.pod(some_workloads(), a_device(), node).body

    affinity = body["spec"]["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert len(body["metadata"]["labels"]["akri.sh/target-node"]) == 63
    assert required["nodeSelectorTerms"][0]["matchFields"][0]["values"] == [node]


def test_names_with_dots_are_in_the_resource_as_they_are() -> None:
    device = a_device(InstanceName("line.1-8120fe"))

    spec = bodies.pod(some_workloads(), device, NODE_A).body["spec"]

    assert list(spec["containers"][0]["resources"]["limits"]) == ["akri.sh/line.1-8120fe"]
