"""Reads what tells of other kube-schedulers of the release's names, see `rivals`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
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
)
from kube.shapes.events import Event
from kube.shapes.reading import read_as
from scheduler_plugin.checking.rivals import (
    by_identity,
    decided_pod,
    deciding,
    has_replicas,
    is_confirmed,
    is_of_another,
    lease_namespaces,
    pod_of,
    rival_leases,
)
from scheduler_plugin.checking.setups import DecidedPod, Objects, Unread
from scheduler_plugin.settings import CheckSettings


@dataclass(frozen=True, slots=True)
class Rivals:
    """Fields of a `Setup`."""

    scheduler_events: tuple[Event, ...] | Unread = ()
    rival_leases: Objects = ()
    decided_pods: tuple[DecidedPod, ...] | Unread = ()


async def read_rivals(client: ApiClient, settings: CheckSettings, pods: Objects) -> Rivals:
    """Read Events, the Leases that they name, and the pods that have the names of the release.

    Where the release has no kube-scheduler of its own, in mode Cluster, Events of pods tell
    nothing: they are as many as the cluster's pods, and are not read.

    Args:
        client: The API server's.
        settings: Whose release it is.
        pods: Of Moorage, in all namespaces.
    """
    try:
        elections = await _elections(client, settings)
        leases = await _leases(client, settings, elections)
        decisions, decided = await _decisions(client, settings, pods)
    except ApiError as error:
        return Rivals(scheduler_events=Unread(str(error)))
    return Rivals((*elections, *decisions), leases, decided)


async def _elections(client: ApiClient, settings: CheckSettings) -> list[Event]:
    found: list[Event] = []
    for name in settings.expected.scheduler_names:
        chosen = f"reportingController={name},regarding.kind=Lease"
        for namespace in lease_namespaces(settings.namespace, settings.expected.lease):
            page = await client.list(EVENTS.select(namespace, field_selector=chosen))
            found += (read_as(Event, obj) for obj in page.items)
    return found


async def _decisions(
    client: ApiClient, settings: CheckSettings, pods: Objects
) -> tuple[tuple[Event, ...], tuple[DecidedPod, ...]]:
    """What hosts decided that are none of the release's, with the pods that confirm it.

    Nearly always there is no such Event, and no pod is read. Where there is one, all pods are that
    have the scheduler name, and Events once more: what no pod confirms is forged, and takes no
    place of another, however many there are.
    """
    async with aclosing(_of_others(client, settings, pods)) as pages:
        if await anext(pages, None) is None:
            return (), ()
    decided = by_identity([pod async for pod in _decided_pods(client, settings)])
    found: tuple[Event, ...] = ()
    async for page in _of_others(client, settings, pods):
        found = tuple(deciding((*found, *(e for e in page if is_confirmed(e, decided)))))
    return found, tuple(decided[key] for key in dict.fromkeys(map(pod_of, found)))


async def _of_others(
    client: ApiClient, settings: CheckSettings, pods: Objects
) -> AsyncGenerator[list[Event], None]:
    """Page by page, those with any: nearly all are of the release's own."""
    if not has_replicas(pods, settings.namespace):
        return
    for name in settings.expected.scheduler_names:
        chosen = f"reportingController={name},regarding.kind=Pod"
        async for page in client.pages(EVENTS.select(field_selector=chosen)):
            events = (read_as(Event, obj) for obj in page.items)
            if found := [e for e in events if is_of_another(e, pods, settings.namespace)]:
                yield found


async def _decided_pods(client: ApiClient, settings: CheckSettings) -> AsyncIterator[DecidedPod]:
    for name in settings.expected.scheduler_names:
        chosen = f"spec.schedulerName={name}"
        async for page in client.pages(PODS.select(field_selector=chosen)):
            for body in page.items:
                yield decided_pod(body)


async def _leases(client: ApiClient, settings: CheckSettings, elections: list[Event]) -> Objects:
    """The Leases that another kube-scheduler is elected by."""
    found: list[JsonObject] = []
    for namespace, name in rival_leases(elections, settings.namespace, settings.expected.lease):
        try:
            lease = await _found(client, LEASES.at(name, namespace))
        except ApiError as error:
            return Unread(str(error))
        found += lease
    return tuple(found)


async def _found(client: ApiClient, path: ObjectPath) -> list[JsonObject]:
    """An object, or none."""
    try:
        return [await client.get(path)]
    except NotFoundError:
        return []
