"""Bodies of Pods, Jobs, Services and ResourceClaimTemplates, as they are created.

Each body tells by its annotation which specification it was made from, so that a changed one is
seen whatever defaults the API server and webhooks have added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import (
    ATTRIBUTE_INSTANCE,
    DRIVER_NAME,
    ConfigurationName,
    NodeName,
)
from driver.brokers import names
from driver.brokers.devices import Device
from driver.brokers.pod_specs import on_node, slots, with_claim, with_resource
from driver.brokers.workloads import Workloads
from driver.device_ids import instance_resource
from driver.names import attribute_value, label_value, short_hash
from kube.kinds import INSTANCES, JOBS, PODS, SERVICES, TEMPLATES
from kube.resources import Resource
from kube.shapes.reading import JsonObject

_KINDS = {PODS: "Pod", JOBS: "Job", SERVICES: "Service", TEMPLATES: "ResourceClaimTemplate"}

REVISION = f"{DRIVER_NAME}/broker-revision"
"""The annotation with a hash of the specification that the object was made from."""


@dataclass(frozen=True, slots=True)
class Made:
    """An object to be created, with its kind."""

    resource: Resource
    body: JsonObject

    @property
    def name(self) -> str:
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self.body["metadata"]["namespace"]
        return namespace

    @property
    def revision(self) -> str:
        return revision_of(self.body["metadata"])


def revision_of(metadata: JsonObject) -> str:
    """The revision of an object; "" if something else made it."""
    return str((metadata.get("annotations") or {}).get(REVISION, ""))


def pod(wanted: Workloads, device: Device, node: NodeName) -> Made:
    """The broker Pod of a device on a node; the Configuration must want one."""
    name = names.pod_name(device.name, node, shared=device.shared)
    spec = on_node(_with_device(wanted.pod or {}, device), node)
    labels = {
        **_labels(wanted, device, name),
        names.TARGET_NODE_LABEL: label_value(node),
    }
    return _made(PODS, wanted, _of_instance(device, name, labels), spec)


def job(wanted: Workloads, device: Device) -> Made:
    """The broker Job of a device; the Configuration must want one."""
    given: JsonObject = wanted.job or {}
    name = names.job_name(device.name, wanted.generation)
    template = given["template"]
    metadata = template.get("metadata") or {}
    of_pods = {**wanted.labels, **(metadata.get("labels") or {}), **_of_device(wanted, device)}
    spec = {
        **given,
        "template": {
            **template,
            "metadata": {**metadata, "labels": of_pods},
            "spec": _with_device(template["spec"], device),
        },
    }
    return _made(JOBS, wanted, _of_instance(device, name, _labels(wanted, device, name)), spec)


def instance_service(wanted: Workloads, device: Device) -> Made:
    """The Service of the brokers of a device; the Configuration must want one."""
    name = names.instance_service_name(device.name)
    of_device = {names.INSTANCE_LABEL: label_value(device.name)}
    spec = _selecting(wanted.instance_service or {}, of_device)
    labels = {**names.made_labels(name), **of_device}
    return _made(SERVICES, wanted, _of_instance(device, name, labels), spec)


def configuration_service(wanted: Workloads) -> Made:
    """The Service of all brokers of a Configuration, which must want one."""
    configuration = ConfigurationName(wanted.configuration)
    name = names.configuration_service_name(configuration)
    of_configuration = {names.CONFIGURATION_LABEL: label_value(configuration)}
    spec = _selecting(wanted.configuration_service or {}, of_configuration)
    labels = {**names.made_labels(name), **of_configuration}
    owner = _owner("Configuration", wanted.configuration, wanted.uid)
    return _made(SERVICES, wanted, _metadata(name, labels, owner), spec)


def claim_template(wanted: Workloads, device: Device) -> Made | None:
    """The template of the brokers' claims of a device; None if none of them has the device."""
    count = slots(wanted.pod_spec or {})
    if not device.is_dra or not count:
        return None
    name = names.template_name(device.name)
    spec = {"spec": {"devices": {"requests": [_request(wanted, device, count)]}}}
    labels = {**names.made_labels(name), **_of_device(wanted, device)}
    return _made(TEMPLATES, wanted, _of_instance(device, name, labels), spec)


def _request(wanted: Workloads, device: Device, count: int) -> JsonObject:
    """The device by the attribute that its slices have; more than one slot as its capacity."""
    value = attribute_value(device.name)
    expression = f'device.attributes["{DRIVER_NAME}"].{ATTRIBUTE_INSTANCE} == "{value}"'
    exactly: dict[str, Any] = {
        "deviceClassName": wanted.configuration,
        "selectors": [{"cel": {"expression": expression}}],
    }
    if count > 1:
        exactly["capacity"] = {"requests": {"slots": str(count)}}
    return {"name": "device", "exactly": exactly}


def _with_device(spec: JsonObject, device: Device) -> JsonObject:
    if device.is_dra:
        return with_claim(spec, names.template_name(device.name))
    return with_resource(spec, instance_resource(device.name))


def _selecting(spec: JsonObject, labels: Mapping[str, str]) -> JsonObject:
    selector = {**(spec.get("selector") or {}), names.CONTROLLER_LABEL: names.CONTROLLER, **labels}
    return {**spec, "selector": selector}


def _of_device(wanted: Workloads, device: Device) -> dict[str, str]:
    return names.broker_labels(ConfigurationName(wanted.configuration), device.name)


def _labels(wanted: Workloads, device: Device, name: str) -> dict[str, str]:
    return {**wanted.labels, **names.made_labels(name), **_of_device(wanted, device)}


def _of_instance(device: Device, name: str, labels: Mapping[str, str]) -> JsonObject:
    """Metadata of an object that goes with an Instance."""
    return _metadata(name, labels, _owner("Instance", device.name, device.uid))


def _metadata(name: str, labels: Mapping[str, str], owner: JsonObject) -> JsonObject:
    return {"name": name, "labels": dict(labels), "ownerReferences": [owner]}


def _owner(kind: str, name: str, uid: str) -> JsonObject:
    return {
        "apiVersion": INSTANCES.api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _made(resource: Resource, wanted: Workloads, metadata: JsonObject, spec: JsonObject) -> Made:
    annotations = {REVISION: _revision(spec, wanted)}
    body = {
        "apiVersion": resource.api_version,
        "kind": _KINDS[resource],
        "metadata": {**metadata, "namespace": wanted.namespace, "annotations": annotations},
        "spec": spec,
    }
    return Made(resource, body)


def _revision(spec: JsonObject, wanted: Workloads) -> str:
    """Of all that the object depends on; a claim of a pod does not tell how many slots it has."""
    inputs = [spec, dict(wanted.labels), slots(wanted.pod_spec or {})]
    return short_hash(json.dumps(inputs, sort_keys=True))
