"""Objects of the stories about the webhook, and what came of writing them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from kube.calls.api import ApiError
from kube.kinds import CLASSES, CONFIGURATIONS
from kube.objects import JsonObject
from kube.resources import Resource
from local_cluster.api import Cluster

QUEUE_LABEL = "moorage.dev/queue"
LABEL_PATH = f"metadata.labels[{QUEUE_LABEL}]"
OPEN, CLOSED = "webhook-open", "webhook-closed"
"""Namespaces: one that every queue admits, one with a label that some queues do not admit."""

MANAGED_LABEL = "moorage.dev/managed"
MANAGED = "webhook-managed"
"""A namespace that opted in, and whose pods have the queue `open`."""

VERSIONS = ("v1", "v1beta2", "v1beta1")
CLAIMS = {version: Resource("resource.k8s.io", version, "resourceclaims") for version in VERSIONS}
TEMPLATES = {
    version: Resource("resource.k8s.io", version, "resourceclaimtemplates") for version in VERSIONS
}

QUEUE_SPECS: Mapping[str, Mapping[str, Any]] = {
    "open": {"resources": [{"deviceClass": "onvif", "quota": 8}]},
    "picky": {"namespaceSelector": {"matchLabels": {"team": "lab"}}},
    "shut": {"namespaceSelector": None},
    "unnamed": {"claimSharing": {"labelAtCreate": "Deny"}},
    "unnamed-child": {"parent": "unnamed"},
}


@dataclass(frozen=True)
class Refusal:
    """What the API server said to a write; empty where it did what it was asked."""

    message: str = ""
    fields: tuple[str, ...] = ()


async def refusal(write: Awaitable[object]) -> Refusal:
    try:
        await write
    except ApiError as error:
        return Refusal(error.message, tuple(str(cause.get("field")) for cause in error.causes))
    return Refusal()


def new_name(kind: str) -> str:
    return f"{kind}-{uuid4().hex[:8]}"


def metadata(kind: str, namespace: str, queue: str | None) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {QUEUE_LABEL: queue}}
    return {"name": new_name(kind), "namespace": namespace, **labels}


def devices(version: str, device_class: str = "onvif") -> dict[str, Any]:
    """One request; v1beta1 had no `exactly`."""
    asked = {"deviceClassName": device_class}
    request = asked if version == "v1beta1" else {"exactly": asked}
    return {"devices": {"requests": [{"name": "cam", **request}]}}


def a_claim(
    queue: str | None = None,
    *,
    namespace: str = OPEN,
    version: str = "v1",
    device_class: str = "onvif",
) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": metadata("claim", namespace, queue),
        "spec": devices(version, device_class),
    }


def a_template(
    queue: str | None = None, *, namespace: str = OPEN, version: str = "v1"
) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {QUEUE_LABEL: queue}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata("template", namespace, None),
        "spec": {"metadata": labels, "spec": devices(version)},
    }


def asking(body: Any, *path: str, **fields: Any) -> Any:
    """An object that asks this of its devices."""
    parameters = {"apiVersion": "moorage.dev/v1alpha1", "kind": "DeviceConfig", **fields}
    inside = body
    for field in path:
        inside = inside.setdefault(field, {})
    inside["config"] = [{"opaque": {"driver": "moorage.dev", "parameters": parameters}}]
    return body


def a_new_class(version: str = "v1") -> Any:
    api = {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceClass"}
    return {**api, "metadata": {"name": new_name("class")}, "spec": {}}


def a_pod(
    *,
    queue: str | None = None,
    namespace: str = OPEN,
    claims: Sequence[str] = (),
    templates: Sequence[str] = (),
    resources: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of scheduler `moorage`; `resources` are those of its one container."""
    entries = [{"name": f"c{n}", "resourceClaimName": c} for n, c in enumerate(claims)]
    entries += [{"name": f"t{n}", "resourceClaimTemplateName": t} for n, t in enumerate(templates)]
    container = {"name": "main", "image": "none", "resources": resources or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata("pod", namespace, queue),
        "spec": {
            "containers": [container],
            "schedulerName": "moorage",
            "automountServiceAccountToken": False,
            **({"resourceClaims": entries} if entries else {}),
            **spec,
        },
    }


def a_queue(name: str = "", **spec: Any) -> dict[str, Any]:
    """All namespaces may use it, unless `namespaceSelector` says otherwise."""
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name or new_name("queue")},
        "spec": {"namespaceSelector": {}, **spec},
    }


def a_class(name: str, **fields: Any) -> dict[str, Any]:
    named = {"apiVersion": CLASSES.api_version, "kind": "DeviceClass"}
    return {
        **named,
        "metadata": {"name": name, **fields.get("metadata", {})},
        "spec": fields["spec"],
    }


def a_namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def the_world() -> list[dict[str, Any]]:
    """What is there before the webhook starts."""
    gpu = {"metadata": {"labels": {"moorage.dev/accounted": "true"}}}
    return [
        a_namespace(OPEN, team="lab"),
        a_namespace(CLOSED, team="shop"),
        a_namespace(MANAGED, **{MANAGED_LABEL: "true", QUEUE_LABEL: "open"}),
        a_class("onvif", spec={}),
        a_class("nic", spec={}),
        a_class("gpu", **gpu, spec={"extendedResourceName": "example.com/gpu"}),
        {
            "apiVersion": CONFIGURATIONS.api_version,
            "kind": "Configuration",
            "metadata": {"name": "usb", "namespace": OPEN},
            "spec": {"discoveryHandler": {"name": "udev", "discoveryDetails": ""}},
        },
        *(a_queue(name, **spec) for name, spec in QUEUE_SPECS.items()),
    ]


def allocated(claim: JsonObject) -> dict[str, Any]:
    """The claim's status as a scheduler would write it."""
    result = {"request": "cam", "driver": "moorage.dev", "pool": "onvif", "device": "onvif-1"}
    return {**claim, "status": {"allocation": {"devices": {"results": [result]}}}}


def warnings_of(cluster: Cluster, *arguments: str, body: Any = None) -> str:
    """What kubectl prints beside the result, warnings and errors."""
    stdin = None if body is None else json.dumps(body)
    return cluster.kubectl(*arguments, stdin=stdin, check=False).stderr
