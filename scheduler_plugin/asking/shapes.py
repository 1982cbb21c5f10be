"""The fields that a snapshot keeps of each kind: those that the rules read, and no others.

A shape names fields: a mapping names the fields of an object, a list of one shape those of each
entry, and a set the keys of labels and annotations. ALL keeps a part unchanged. So environment,
commands, tokens and discovery details never leave the cluster. Attributes of devices and CEL
selectors of requests do so only if an entry of a Queue has a selector, which needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

from driver.api import (
    ATTRIBUTE_CONFIGURATION,
    ATTRIBUTE_INSTANCE,
    CONFIGURATION_LABEL,
    OFFERED_THROUGH,
    OFFLINE_SINCE,
)
from kube.shapes.reading import JsonObject
from scheduler_plugin.objects.names import (
    ACCOUNTED_LABEL,
    ADMITTED_CONDITION,
    CHARGED_ANNOTATION,
    EVICT_FOREIGN_ANNOTATION,
    MAX_PODS_ANNOTATION,
    MIRROR_ANNOTATION,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
    POD_GROUP_ANNOTATION,
    POD_GROUP_LABEL,
    PREEMPTIBILITY_LABELS,
    QUEUE_ANNOTATION,
    RECLAIMING_CONDITION,
    STALE_CONDITION,
)

ALL: Final = "all"

REPORTED_CONDITIONS = frozenset(
    {ADMITTED_CONDITION, RECLAIMING_CONDITION, STALE_CONDITION, "PodScheduled"}
)
"""The conditions of pods whose messages are kept: they say what the pod waits for."""

_CONTAINER = {"restartPolicy": ALL, "resources": {"requests": ALL, "limits": ALL}}
_EXACT = dict.fromkeys(
    ("name", "deviceClassName", "allocationMode", "count", "adminAccess", "tolerations"), ALL
)
_ASKED = {**_EXACT, "capacity": {"requests": ALL}}
_OWN_ATTRIBUTES = {ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE}
_RESULT = dict.fromkeys(
    ("request", "driver", "pool", "device", "shareID", "consumedCapacity", "adminAccess"), ALL
)
_CONDITION = dict.fromkeys(("type", "status", "reason", "lastTransitionTime", "message"), ALL)
_NODES = ("nodeName", "allNodes", "nodeSelector")
_REPORT = dict.fromkeys(("name", "handler", "since", "registered", "propertiesRead"), ALL)


_SELECTING = frozenset({"driver", "selector", "measure"})
"""Fields of an entry that is not for a class alone."""


def needs_looks(queues: Iterable[JsonObject]) -> bool:
    """Whether the charges of any entry may depend on selectors: its own, a class's, a request's."""
    entries = (e for queue in queues for e in (queue.get("spec") or {}).get("resources") or ())
    return any(not _SELECTING.isdisjoint(entry) for entry in entries)


def _devices(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"devices": {"requests": [{"name": ALL, "exactly": asked, "firstAvailable": [asked]}]}}


def shapes(queue_label: str, *, with_looks: bool = False) -> Mapping[str, Any]:
    """The shape of each kind by its plural.

    Args:
        queue_label: The key of the queue label.
        with_looks: Whether to keep what decides which devices selectors select.
    """
    devices = _devices({**_ASKED, "selectors": ALL} if with_looks else _ASKED)
    identity = {"namespace": ALL, "name": ALL, "uid": ALL, "creationTimestamp": ALL}
    queue = {"labels": {queue_label}}
    return {
        "pods": {
            "metadata": {
                **identity,
                "deletionTimestamp": ALL,
                "labels": {queue_label, *PREEMPTIBILITY_LABELS, POD_GROUP_LABEL},
                "annotations": {QUEUE_ANNOTATION, POD_GROUP_ANNOTATION, MIRROR_ANNOTATION},
            },
            "spec": {
                "nodeName": ALL,
                "schedulerName": ALL,
                "priority": ALL,
                "schedulingGates": ALL,
                "schedulingGroup": {"podGroupName": ALL},
                "resourceClaims": ALL,
                "initContainers": [_CONTAINER],
                "containers": [_CONTAINER],
            },
            "status": {
                "phase": ALL,
                "nominatedNodeName": ALL,
                "conditions": [_CONDITION],
                "resourceClaimStatuses": ALL,
                "extendedResourceClaimStatus": {
                    "resourceClaimName": ALL,
                    "requestMappings": [{"resourceName": ALL}],
                },
            },
        },
        "resourceclaims": {
            "metadata": {
                **identity,
                **queue,
                "resourceVersion": ALL,
                "annotations": {
                    CHARGED_ANNOTATION,
                    EVICT_FOREIGN_ANNOTATION,
                    OWNER_POD_ANNOTATION,
                    OWNER_LEFT_AT_ANNOTATION,
                },
            },
            "spec": devices,
            "status": {
                "allocation": {"devices": {"results": [_RESULT]}},
                "reservedFor": ALL,
            },
        },
        "resourceclaimtemplates": {
            "metadata": identity,
            "spec": {"metadata": queue, "spec": devices},
        },
        "deviceclasses": {
            "metadata": {
                **identity,
                "labels": {CONFIGURATION_LABEL, ACCOUNTED_LABEL},
                "annotations": {MAX_PODS_ANNOTATION},
            },
            "spec": {"extendedResourceName": ALL, "selectors": ALL},
        },
        "resourceslices": {
            "metadata": {"name": ALL},
            "spec": {
                **dict.fromkeys(("driver", "pool", "perDeviceNodeSelection", *_NODES), ALL),
                "devices": [
                    {
                        **dict.fromkeys(_NODES, ALL),
                        "name": ALL,
                        "attributes": ALL if with_looks else _OWN_ATTRIBUTES,
                        **dict.fromkeys(("capacity", "consumesCounters", "taints"), ALL),
                        "allowMultipleAllocations": ALL,
                    }
                ],
            },
        },
        "devicetaintrules": {
            "metadata": {"name": ALL},
            "spec": {"deviceSelector": ALL, "taint": ALL},
        },
        "namespaces": {"metadata": {"name": ALL, "labels": ALL}},
        "podgroups": {
            "apiVersion": ALL,
            "metadata": {**identity, **queue},
            "spec": dict.fromkeys(
                ("queue", "minMember", "schedulingPolicy", "disruptionMode", "resourceClaims"), ALL
            ),
        },
        "priorityclasses": {"metadata": {"name": ALL}, "value": ALL, "globalDefault": ALL},
        "queues": {
            "metadata": {
                **identity,
                "generation": ALL,
                "finalizers": ALL,
                "deletionTimestamp": ALL,
            },
            "spec": ALL,
            "status": ALL,
        },
        "configurations": {
            "metadata": identity,
            "spec": {
                "discoveryHandler": {"name": ALL},
                **dict.fromkeys(("capacity", "uniqueDevices", "offlineGracePeriod"), ALL),
                "offlineTaintEffect": ALL,
            },
            "status": {"conditions": [_CONDITION], "nodes": [{**_REPORT, "message": ALL}]},
        },
        "instances": {
            "metadata": {**identity, "annotations": {OFFLINE_SINCE, OFFERED_THROUGH}},
            "spec": dict.fromkeys(
                ("configurationName", "capacity", "shared", "nodes", "deviceUsage"), ALL
            ),
        },
    }


def pruned(value: Any, shape: Any) -> Any:
    """The part of a value that a shape keeps."""
    if shape == ALL:
        return value
    if isinstance(shape, list):
        return [pruned(entry, shape[0]) for entry in value or ()]
    if not isinstance(value, Mapping):
        return value
    if isinstance(shape, Set):
        return {key: found for key, found in value.items() if key in shape}
    return {key: pruned(value[key], part) for key, part in shape.items() if key in value}


def without_messages(kind: str, obj: JsonObject) -> JsonObject:
    """The object for a file, without the messages of handlers and of other controllers.

    Pods keep only the messages that say what they wait for (`REPORTED_CONDITIONS`).
    """
    status = obj.get("status") or {}
    if kind == "pods" and status.get("conditions"):
        kept = [_without_other_message(c) for c in status["conditions"]]
        return {**obj, "status": {**status, "conditions": kept}}
    if kind == "configurations" and status:
        parts = {
            name: [_without_message(entry) for entry in found] for name, found in status.items()
        }
        return {**obj, "status": parts}
    return obj


def _without_other_message(condition: JsonObject) -> JsonObject:
    return (
        condition if condition.get("type") in REPORTED_CONDITIONS else _without_message(condition)
    )


def _without_message(entry: JsonObject) -> JsonObject:
    return {key: value for key, value in entry.items() if key != "message"}
