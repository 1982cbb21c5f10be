"""Reads what is to be checked; what cannot be read is told instead of it."""

from __future__ import annotations

import asyncio
from typing import Any

import yaml

from kube.api import (
    ACCESS_REVIEWS,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEFINITIONS,
    EVENTS,
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
from scheduler_plugin.checking.rivals import rival_leases
from scheduler_plugin.checking.setups import Objects, Permission, Setup, Unread
from scheduler_plugin.checking.workloads import PART_OF, PERMISSIONS
from scheduler_plugin.extender.scheduler_configuration import scheduler_configuration
from scheduler_plugin.settings import CheckSettings

_ADMISSION = "admissionregistration.k8s.io"
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False)
ENDPOINTS = Resource("discovery.k8s.io", "v1", "endpointslices")


async def read_setup(client: ApiClient, settings: CheckSettings) -> Setup:
    """Read all of it, side by side.

    Raises:
        ApiError: If not even the API server's version can be had.
    """
    server = await client.server()
    own_time = wall_clock()
    lease_namespace, lease_name = settings.expected.lease
    service = "kubernetes.io/service-name=moorage-webhook"
    selections = {
        "definitions": DEFINITIONS.select(),
        "policies": POLICIES.select(),
        "bindings": BINDINGS.select(),
        "validating": VALIDATING_WEBHOOKS.select(),
        "mutating": MUTATING_WEBHOOKS.select(),
        "endpoints": ENDPOINTS.select(settings.namespace, label_selector=service),
        "pods": PODS.select(label_selector=PART_OF),
        "daemon_sets": DAEMON_SETS.select(label_selector=PART_OF),
        "queues": QUEUES.select(),
        "classes": CLASSES.select(),
        "slices": SLICES.select(),
        "claims": CLAIMS.select(),
    }
    listed, lease, rivals, (configuration, source), denied, serves_dra = await asyncio.gather(
        asyncio.gather(*(_listed(client, selection) for selection in selections.values())),
        _object(client, LEASES.at(lease_name, lease_namespace)),
        _rivals(client, settings),
        _configuration(client, settings),
        _denied(client, settings.account),
        _serves(client, SLICES),
    )
    return Setup(
        namespace=settings.namespace,
        git_version=server.git_version,
        server_time=server.time,
        own_time=own_time,
        serves_dra=serves_dra,
        lease_name=settings.expected.lease,
        lease=lease,
        scheduler_events=rivals[0],
        rival_leases=rivals[1],
        configuration=configuration,
        configuration_source=source,
        expected=scheduler_configuration(settings.expected),
        account=settings.account,
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


async def _rivals(client: ApiClient, settings: CheckSettings) -> tuple[Objects, Objects]:
    """Events of kube-schedulers of the expected names, and the Leases of others that they name."""
    events: list[JsonObject] = []
    for name in settings.expected.scheduler_names:
        listed = await _listed(client, EVENTS.select(field_selector=f"reportingController={name}"))
        if isinstance(listed, Unread):
            return listed, ()
        events += listed
    leases: list[JsonObject] = []
    for namespace, name in rival_leases(events, settings.expected.lease):
        found = await _object(client, LEASES.at(name, namespace))
        if not isinstance(found, Unread):
            leases.append(found)
        elif not found.absent:
            return tuple(events), found
    return tuple(events), tuple(leases)


async def _object(client: ApiClient, path: ObjectPath) -> JsonObject | Unread:
    try:
        return await client.get(path)
    except ApiError as error:
        return Unread(str(error), absent=isinstance(error, NotFoundError))


async def _configuration(client: ApiClient, settings: CheckSettings) -> tuple[Any, str]:
    """kube-scheduler's configuration, and where it was found."""
    if (file := settings.scheduler_config) is not None:
        return _parsed(file.read_text(encoding="utf-8")), str(file)
    path = CONFIG_MAPS.at("moorage-scheduler", settings.namespace)
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
