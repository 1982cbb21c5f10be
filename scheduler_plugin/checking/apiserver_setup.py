"""Reads what is to be checked; a part that cannot be read becomes `Unread`."""

from __future__ import annotations

import asyncio
from typing import Any

import yaml

from kube.calls.api import ApiClient, ApiError, NotFoundError
from kube.kinds import (
    ACCESS_REVIEWS,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEFINITIONS,
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    QUEUES,
    SLICES,
    VALIDATING_WEBHOOKS,
)
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection
from kube.shapes.claims import WORKLOAD_GROUP
from kube.wall_clock import wall_clock
from scheduler_plugin.checking.apiserver_rivals import read_rivals
from scheduler_plugin.checking.entries import selectors_of
from scheduler_plugin.checking.selector_processes import invalid_selectors
from scheduler_plugin.checking.setups import Objects, Permission, Setup, Unread
from scheduler_plugin.checking.workloads import PART_OF, PERMISSIONS
from scheduler_plugin.extender.scheduler_configuration import scheduler_configuration
from scheduler_plugin.settings import CheckSettings

_ADMISSION = "admissionregistration.k8s.io"
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False)
COMPOSITE_GROUPS = Resource(WORKLOAD_GROUP, "", "compositepodgroups")
ENDPOINTS = Resource("discovery.k8s.io", "v1", "endpointslices")


async def read_setup(client: ApiClient, settings: CheckSettings) -> Setup:
    """Read all parts concurrently.

    Raises:
        ApiError: If even the API server's version cannot be read.
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
    listed, lease, (configuration, source), denied, serves_dra, composite = await asyncio.gather(
        asyncio.gather(*(_listed(client, selection) for selection in selections.values())),
        _object(client, LEASES.at(lease_name, lease_namespace)),
        _configuration(client, settings),
        _denied(client, settings.account),
        _serves(client, SLICES),
        _serves(client, COMPOSITE_GROUPS),
    )
    found = dict(zip(selections, listed, strict=True))
    rivals = await read_rivals(client, settings, found["pods"])
    selectors = await invalid_selectors(selectors_of(found["queues"]))
    return Setup(
        namespace=settings.namespace,
        git_version=server.git_version,
        server_time=server.time,
        own_time=own_time,
        serves_dra=serves_dra,
        serves_composite_groups=composite,
        lease_name=settings.expected.lease,
        lease=lease,
        scheduler_events=rivals.scheduler_events,
        rival_leases=rivals.rival_leases,
        decided_pods=rivals.decided_pods,
        configuration=configuration,
        configuration_source=source,
        expected=scheduler_configuration(settings.expected),
        account=settings.account,
        denied=denied,
        invalid_selectors=selectors,
        **found,
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
        if not resource.version:
            return await client.in_served_version(resource) is not None
        return await client.serves(resource)
    except ApiError:
        return False
