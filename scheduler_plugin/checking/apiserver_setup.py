"""Reads what is to be checked; what cannot be read is told instead of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kube.api import (
    ACCESS_REVIEWS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEFINITIONS,
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    QUEUES,
    SLICES,
    VALIDATING_WEBHOOKS,
    ApiClient,
    ApiError,
    JsonObject,
    NotFoundError,
    ObjectPath,
    Resource,
    Selection,
    wall_clock,
)
from scheduler_plugin.checking.setups import Objects, Permission, Setup, Unread
from scheduler_plugin.checking.workloads import PART_OF, PERMISSIONS

_ADMISSION = "admissionregistration.k8s.io"
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False)
ENDPOINTS = Resource("discovery.k8s.io", "v1", "endpointslices")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which set-up is meant.

    Attributes:
        configuration_file: None if kube-scheduler has it from the release's ConfigMap.
        expected: What `print-config` prints.
    """

    namespace: str
    lease: tuple[str, str]
    account: str
    configuration_file: Path | None
    expected: str


async def read_setup(client: ApiClient, question: Question) -> Setup:
    """Read all of it, side by side.

    Raises:
        ApiError: If not even the API server's version can be had.
    """
    server = await client.server()
    own_time = wall_clock()
    service = "kubernetes.io/service-name=moorage-webhook"
    selections = {
        "definitions": DEFINITIONS.select(),
        "policies": POLICIES.select(),
        "bindings": BINDINGS.select(),
        "validating": VALIDATING_WEBHOOKS.select(),
        "mutating": MUTATING_WEBHOOKS.select(),
        "endpoints": ENDPOINTS.select(question.namespace, label_selector=service),
        "pods": PODS.select(label_selector=PART_OF),
        "daemon_sets": DAEMON_SETS.select(label_selector=PART_OF),
        "queues": QUEUES.select(),
    }
    listed, lease, (configuration, source), denied, serves_dra = await asyncio.gather(
        asyncio.gather(*(_listed(client, selection) for selection in selections.values())),
        _object(client, LEASES.at(question.lease[1], question.lease[0])),
        _configuration(client, question),
        _denied(client, question.account),
        _serves(client, SLICES),
    )
    return Setup(
        namespace=question.namespace,
        git_version=server.git_version,
        server_time=server.time,
        own_time=own_time,
        serves_dra=serves_dra,
        lease_name=question.lease,
        lease=lease,
        configuration=configuration,
        configuration_source=source,
        expected=yaml.safe_load(question.expected),
        account=question.account,
        denied=denied,
        **dict(zip(selections, listed, strict=True)),
    )


async def _listed(client: ApiClient, selection: Selection) -> Objects:
    try:
        return (await client.list(selection)).items
    except NotFoundError:
        return ()
    except ApiError as error:
        return Unread(str(error))


async def _object(client: ApiClient, path: ObjectPath) -> JsonObject | Unread:
    try:
        return await client.get(path)
    except ApiError as error:
        return Unread(str(error), absent=isinstance(error, NotFoundError))


async def _configuration(client: ApiClient, question: Question) -> tuple[Any, str]:
    """kube-scheduler's configuration, and where it was found."""
    if (file := question.configuration_file) is not None:
        return _parsed(file.read_text(encoding="utf-8")), str(file)
    path = CONFIG_MAPS.at("moorage-scheduler", question.namespace)
    found = await _object(client, path)
    if isinstance(found, Unread):
        return found, str(path)
    return _parsed(found.get("data", {}).get("config.yaml", "")), f"ConfigMap {path.name}"


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        return Unread(str(error))


async def _denied(client: ApiClient, account: str) -> tuple[Permission, ...] | Unread:
    try:
        allowed = await asyncio.gather(*(_may(client, account, each) for each in PERMISSIONS))
    except ApiError as error:
        return Unread(str(error))
    return tuple(each for each, may in zip(PERMISSIONS, allowed, strict=True) if not may)


async def _may(client: ApiClient, account: str, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
    }
    review = {"metadata": {}, "spec": {"user": account, "resourceAttributes": attributes}}
    kind = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": "SubjectAccessReview"}
    answer = await client.create(ACCESS_REVIEWS, {**kind, **review})
    return bool(answer["status"]["allowed"])


async def _serves(client: ApiClient, resource: Resource) -> bool:
    try:
        return await client.serves(resource)
    except ApiError:
        return False
