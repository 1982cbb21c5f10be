"""Names and labels of what is made for Configurations and Instances: those of Akri.

Akri's names may be too long for the API where a hash or a node's name is long. They are cut then,
and end in a hash of the whole name. The name of a Configuration's Service has dashes for dots,
which Akri leaves there, although the API refuses them.

Source: `create_broker_app_name` in `shared/src/k8s/pod.rs` and `create_service_app_name` in
`shared/src/k8s/service.rs` of Akri.
"""

from __future__ import annotations

from driver.api import (
    AKRI_GROUP,
    BROKER_CONFIGURATION,
    BROKER_SELECTOR,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.names import LABEL_LIMIT, POOL_LIMIT, attribute_value, label_value

APP_LABEL = "app"
SELECTOR = BROKER_SELECTOR
"""Selects the objects that the controller makes."""
CONTROLLER_LABEL, _, CONTROLLER = SELECTOR.partition("=")
CONFIGURATION_LABEL = BROKER_CONFIGURATION
INSTANCE_LABEL = f"{AKRI_GROUP}/instance"
TARGET_NODE_LABEL = f"{AKRI_GROUP}/target-node"

_OBJECT_LIMIT = POOL_LIMIT
"""Most characters of the name of a Pod, a Job or a ResourceClaimTemplate: a DNS subdomain."""
_JOB_LIMIT = LABEL_LIMIT
"""Of a Job: its pods have its name as a label."""
_SERVICE_LIMIT = LABEL_LIMIT
"""Of a Service: its name is a DNS label."""


def pod_name(instance: InstanceName, node: NodeName, *, shared: bool) -> str:
    """The broker Pod of an Instance on a node. A local Instance's name tells its node."""
    name = f"{_dashed(instance)}-pod"
    cut = attribute_value(f"{node}-{name}" if shared else name, limit=_OBJECT_LIMIT)
    # No part of a node's name begins with a dash, except where it was cut at a dot.
    return cut.replace(".-", "--")


def job_name(instance: InstanceName, generation: int) -> str:
    """The broker Job of an Instance, for a generation of its Configuration."""
    return attribute_value(f"{_dashed(instance)}-{generation}-job", limit=_JOB_LIMIT)


def instance_service_name(instance: InstanceName) -> str:
    """The Service of an Instance's brokers."""
    return attribute_value(f"{_dashed(instance)}-svc", limit=_SERVICE_LIMIT)


def configuration_service_name(configuration: ConfigurationName) -> str:
    """The Service of all brokers of a Configuration."""
    return attribute_value(f"{_dashed(configuration)}-svc", limit=_SERVICE_LIMIT)


def template_name(instance: InstanceName) -> str:
    """The ResourceClaimTemplate of an Instance's brokers; Akri has none."""
    return attribute_value(f"{_dashed(instance)}-claim", limit=_OBJECT_LIMIT)


def _dashed(name: str) -> str:
    return name.replace(".", "-")


def broker_labels(configuration: ConfigurationName, instance: InstanceName) -> dict[str, str]:
    """Labels of all Pods and Jobs of an Instance."""
    return {
        CONFIGURATION_LABEL: label_value(configuration),
        INSTANCE_LABEL: label_value(instance),
    }


def made_labels(name: str) -> dict[str, str]:
    """Labels of all objects that the controller makes, and that it watches."""
    return {APP_LABEL: label_value(name), CONTROLLER_LABEL: CONTROLLER}
