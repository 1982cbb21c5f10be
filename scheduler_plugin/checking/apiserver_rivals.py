"""Reads what tells of other kube-schedulers of the release's names, see `rivals`."""

from __future__ import annotations

from dataclasses import dataclass

from kube.api import (
    EVENTS,
    LEASES,
    PODS,
    ApiClient,
    ApiError,
    JsonObject,
    NotFoundError,
    ObjectPath,
    Selection,
)
from scheduler_plugin.checking.rivals import (
    deciding,
    has_replicas,
    is_of_another,
    lease_namespaces,
    rival_leases,
)
from scheduler_plugin.checking.setups import Objects, Unread
from scheduler_plugin.settings import CheckSettings


@dataclass(frozen=True, slots=True)
class Rivals:
    """Fields of a `Setup`."""

    scheduler_events: Objects = ()
    rival_leases: Objects = ()
    decided_pods: Objects = ()


async def read_rivals(client: ApiClient, settings: CheckSettings, pods: Objects) -> Rivals:
    """Read Events, the Leases and the pods that they name.

    Where the release has no kube-scheduler of its own, in mode Cluster, those of pods tell nothing:
    they are as many as the cluster's pods, and are not read.

    Args:
        client: The API server's.
        settings: Whose release it is.
        pods: Of Moorage, in all namespaces.
    """
    try:
        elections = await _elections(client, settings)
        leases = await _leases(client, settings, elections)
        decisions: list[JsonObject] = []
        if has_replicas(pods, settings.namespace):
            decisions = await _decisions(client, settings, pods)
        decided = await _pods(client, decisions)
    except ApiError as error:
        return Rivals(scheduler_events=Unread(str(error)))
    return Rivals((*elections, *decisions), leases, decided)


async def _elections(client: ApiClient, settings: CheckSettings) -> list[JsonObject]:
    found: list[JsonObject] = []
    for name in settings.expected.scheduler_names:
        chosen = f"reportingController={name},regarding.kind=Lease"
        for namespace in lease_namespaces(settings.namespace, settings.expected.lease):
            found += (await client.list(EVENTS.select(namespace, field_selector=chosen))).items
    return found


async def _decisions(client: ApiClient, settings: CheckSettings, pods: Objects) -> list[JsonObject]:
    """The newest of each host that is none of the release's."""
    found: list[JsonObject] = []
    for name in settings.expected.scheduler_names:
        chosen = f"reportingController={name},regarding.kind=Pod"
        found += await _of_others(client, EVENTS.select(field_selector=chosen), settings, pods)
    return list(deciding(found))


async def _of_others(
    client: ApiClient, selection: Selection, settings: CheckSettings, pods: Objects
) -> list[JsonObject]:
    """Page by page: nearly all are of the release's own."""
    found: list[JsonObject] = []
    async for page in client.pages(selection):
        found += (e for e in page.items if is_of_another(e, pods, settings.namespace))
    return found


async def _leases(
    client: ApiClient, settings: CheckSettings, elections: list[JsonObject]
) -> Objects:
    """The Leases that another kube-scheduler is elected by."""
    found: list[JsonObject] = []
    for namespace, name in rival_leases(elections, settings.namespace, settings.expected.lease):
        try:
            lease = await _found(client, LEASES.at(name, namespace))
        except ApiError as error:
            return Unread(str(error))
        found += lease
    return tuple(found)


async def _pods(client: ApiClient, decisions: list[JsonObject]) -> Objects:
    named = {(e["regarding"]["namespace"], e["regarding"]["name"]): None for e in decisions}
    found: list[JsonObject] = []
    for namespace, name in named:
        found += await _found(client, PODS.at(name, namespace))
    return tuple(found)


async def _found(client: ApiClient, path: ObjectPath) -> list[JsonObject]:
    """An object, or none."""
    try:
        return [await client.get(path)]
    except NotFoundError:
        return []
