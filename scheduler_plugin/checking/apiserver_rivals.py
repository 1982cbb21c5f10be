"""Reads what indicates other kube-schedulers with the release's scheduler names, see `rivals`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from kube.calls.api import ApiClient, ApiError, NotFoundError
from kube.kinds import EVENTS, LEASES, PODS
from kube.objects import JsonObject
from kube.resources import ObjectPath
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
    """Fields of `Setup` about other kube-schedulers."""

    scheduler_events: tuple[Event, ...] | Unread = ()
    rival_leases: Objects = ()
    decided_pods: tuple[DecidedPod, ...] | Unread = ()


async def read_rivals(client: ApiClient, settings: CheckSettings, pods: Objects) -> Rivals:
    """Read Events, the Leases that they name, and the pods with the release's scheduler names.

    In mode Cluster the release has no kube-scheduler of its own. Then the Events of pods indicate
    nothing and are not read: there are as many of them as pods in the cluster.

    Args:
        client: A client of the API server.
        settings: The settings of the check.
        pods: Moorage's pods in all namespaces.
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
    """Events of hosts outside the release that decided pods, with the pods that confirm them.

    Nearly always there is no such Event, and no pod is read. If there is one, all pods with the
    scheduler name are read, and the Events again: Events that no pod confirms are forged, and must
    not push others out.
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
    """The pages of Events from other hosts, without empty pages: nearly all are the release's."""
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
    """The Leases with which another kube-scheduler is elected."""
    found: list[JsonObject] = []
    for namespace, name in rival_leases(elections, settings.namespace, settings.expected.lease):
        try:
            lease = await _found(client, LEASES.at(name, namespace))
        except ApiError as error:
            return Unread(str(error))
        found += lease
    return tuple(found)


async def _found(client: ApiClient, path: ObjectPath) -> list[JsonObject]:
    """The object, or an empty list if it does not exist."""
    try:
        return [await client.get(path)]
    except NotFoundError:
        return []
