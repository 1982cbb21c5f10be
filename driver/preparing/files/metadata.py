"""Device metadata: the data of its devices that a container can read (KEP-5304).

    PreparedClaim, Instances ──dump──► …/<claim>/<request>/moorage.dev-metadata.json

Each request of a claim has a file, which is bind-mounted into the containers that name the request.
The file is a stream of JSON objects with the same data in several versions, the newest first;
readers take the first version that they know. Kubernetes defines the paths in containers and the
content, see `k8s.io/dynamic-resource-allocation/api/metadata`. The path on the host is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from driver.api import ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE, DRIVER_NAME, ClaimUid
from driver.instances.instances import Instance
from driver.names import attribute_value
from driver.preparing.files.addresses import network_data
from driver.preparing.files.prepared import AllocatedDevice, PreparedClaim, PreparedDevice
from driver.publishing.desired.attributes import attributes

CONTAINER_FOLDER = "/var/run/kubernetes.io/dra-device-attributes"

VERSIONS = ("v1beta1", "v1alpha1")
"""Versions of `metadata.resource.k8s.io`: of Kubernetes 1.37, and of 1.36."""

Known = Callable[[AllocatedDevice], Instance | None]
"""The current Instance of an allocated device; None if it is unknown."""


def nothing_known(_: AllocatedDevice) -> None:
    """No Instance is known: before the first discovery."""


def requests(claim: PreparedClaim) -> tuple[str, ...]:
    """The requests that have a file; () for a claim that was prepared without metadata."""
    if claim.pod_claim is None:
        return ()
    return tuple(dict.fromkeys(device.allocated.request for device in claim.devices))


def file_name(uid: ClaimUid, request: str) -> str:
    """The name of a request's file on the host; neither part has a `_`."""
    return f"{uid}_{request}.json"


def container_path(claim: PreparedClaim, request: str) -> str:
    """The path of a request's file in containers.

    Applications cannot know the name of a claim that was made from a template; its path has the
    name in the pod's spec.
    """
    claims = "resourceclaimtemplates" if claim.pod_claim else "resourceclaims"
    name = claim.pod_claim or claim.reference.name
    return f"{CONTAINER_FOLDER}/{claims}/{name}/{request}/{DRIVER_NAME}-metadata.json"


def contents(claim: PreparedClaim, request: str, known: Known) -> dict[str, Any]:
    """The content of a request's file, without version and generation."""
    devices = [_device(d, known) for d in claim.devices if d.allocated.request == request]
    pod_claim = {"podClaimName": claim.pod_claim} if claim.pod_claim else {}
    return {**pod_claim, "requests": [{"name": request, "devices": devices}]}


def dump(claim: PreparedClaim, contents: Mapping[str, Any], generation: int) -> bytes:
    """The bytes of a file."""
    reference = claim.reference
    metadata = {
        "name": reference.name,
        "namespace": reference.namespace,
        "uid": reference.uid,
        "generation": generation,
    }
    documents = (
        {
            "apiVersion": f"metadata.resource.k8s.io/{version}",
            "kind": "DeviceMetadata",
            "metadata": metadata,
            **contents,
        }
        for version in VERSIONS
    )
    return b"".join(f"{json.dumps(document)}\n".encode() for document in documents)


def load(text: bytes) -> tuple[Mapping[str, Any], int]:
    """Content and generation of a file; {} and 0 for any other file."""
    try:
        document, _ = json.JSONDecoder().raw_decode(text.decode())
        generation = int(document["metadata"]["generation"])
        return {k: document[k] for k in ("podClaimName", "requests") if k in document}, generation
    except (ValueError, TypeError, LookupError, RecursionError):
        return {}, 0


def _device(device: PreparedDevice, known: Known) -> dict[str, Any]:
    network = network_data(device.properties)
    return {
        "driver": DRIVER_NAME,
        "pool": device.allocated.pool,
        "name": device.allocated.device,
        "attributes": _attributes(device, known(device.allocated)),
        **({"networkData": network} if network else {}),
    }


def _attributes(device: PreparedDevice, instance: Instance | None) -> dict[str, Mapping[str, Any]]:
    """Attributes as in ResourceSlices; a device without Instance has only its names."""
    if instance is not None:
        return attributes(instance)
    return {
        ATTRIBUTE_CONFIGURATION: {"string": attribute_value(device.configuration)},
        ATTRIBUTE_INSTANCE: {"string": attribute_value(device.instance)},
    }
