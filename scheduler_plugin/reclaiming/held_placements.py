"""Holds with their placements: made from targets, read back from conditions, and their outlook."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.blocking_pods import remaining_users
from scheduler_plugin.judging.verdicts import expected_case
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.held_texts import Held, Part, names_of, read_held
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.expected_charges import hold_of_case
from scheduler_plugin.reclaiming.placement.demands import most_devices
from scheduler_plugin.reclaiming.placement.device_parts import part_of
from scheduler_plugin.reclaiming.placement.node_fit import Placement
from scheduler_plugin.reclaiming.victims.effects import being_released, has_no_user_without
from scheduler_plugin.reclaiming.victims.victims import Victim


def with_placements(
    holds: Iterable[Hold], places: Sequence[Placement], victims: Iterable[Victim], world: WorldView
) -> tuple[Hold, ...]:
    """The holds, each with the placement of its pod and with the targets that have to end first."""
    found = {place.pod: place for place in places}
    claims: dict[ClaimUid, None] = {}
    pods: dict[PodUid, None] = {}
    for victim in victims:
        claims |= dict.fromkeys(claim.uid for claim in victim.claims)
        if victim.claim is None:
            pods |= dict.fromkeys(victim.pods)
    return tuple(
        _with_placement(replace(hold, awaits_pods=tuple(pods)), found.get(hold.pod), claims, world)
        for hold in holds
    )


def _with_placement(
    hold: Hold, place: Placement | None, claims: Iterable[ClaimUid], world: WorldView
) -> Hold:
    if place is None:
        return replace(hold, awaits=tuple(claims))
    awaited = dict.fromkeys((*claims, *_with_users(names_of(place.devices), world)))
    terminating = _leaving_node(hold, place.node, world) if place.own else ()
    pods = dict.fromkeys((*hold.awaits_pods, *terminating))
    return replace(
        hold,
        is_device=bool(place.devices or place.own),
        devices=place.devices,
        parts=place.parts,
        resources=place.own,
        node=place.node,
        awaits=tuple(awaited),
        awaits_pods=tuple(pods),
    )


def _with_users(devices: Collection[DeviceId], world: WorldView) -> Iterable[ClaimUid]:
    """The claims that have one of these devices exclusively now, or are about to release it."""
    for device in devices:
        for claim in world.facts.claims_with(device):
            results = (r for r in claim.results or () if r.device_id == device)
            has_all = any(r.slots is None and not r.is_part for r in results)
            if has_all or has_no_user_without(claim, (), world):
                yield claim.uid


def _leaving_node(hold: Hold, node: str, world: WorldView) -> Iterable[PodUid]:
    """The terminating pods on a node that release resources of its device plugin."""
    _, pods = being_released([key for key, _ in hold.usage], world)
    found = (world.facts.pod(uid) for uid in pods)
    return (pod.uid for pod in found if pod is not None and pod.node == node)


def hold_of(pod: PodView, world: WorldView) -> Hold | None:
    """The hold that a pod's condition states; None where nothing can be held.

    Conditions of an earlier version do not name the device: it may be any that is being released.
    """
    if why_not_ours(pod, world.facts.settings):
        return None
    found = hold_of_case(expected_case(pod, world.facts.claims_of(pod), world))
    if found is None:
        return None
    held = read_held(pod.held)
    if held is not None and (held.devices or held.resources):
        return _read_back(found, held, pod, world)
    claims, pods = being_released([key for key, _ in found.usage], world)
    is_of_any = held is None and pod.reclaiming_device
    node = held.node if held is not None else ""
    return replace(found, is_device=is_of_any, node=node, awaits=claims, awaits_pods=pods)


def _read_back(hold: Hold, held: Held, pod: PodView, world: WorldView) -> Hold:
    """The hold of a condition, limited to the pod's requests: any user may write a condition.

    Pods that release room and not the devices are among the terminating ones.
    """
    devices = held.devices[: most_devices(pod, world)]
    asked = dict(pod.requests)
    claims, pods = being_released([key for key, _ in hold.usage], world)
    if pod.reclaiming_device:
        claims = ()
        pods = tuple(_leaving_node(hold, held.node, world)) if held.resources else ()
    return replace(
        hold,
        is_device=True,
        devices=devices,
        parts=tuple(_largest_parts(names_of(devices), pod, world)),
        resources=tuple((name, min(n, asked[name])) for name, n in held.resources if name in asked),
        node=held.node,
        awaits=tuple(dict.fromkeys((*claims, *_with_users(names_of(devices), world)))),
        awaits_pods=pods,
    )


def _largest_parts(
    devices: Iterable[DeviceId], pod: PodView, world: WorldView
) -> Iterator[tuple[DeviceId, Part]]:
    """The largest part of each divided device that any request of a pod may be for."""
    requests = (request for claim in world.facts.claims_of(pod) for request in claim.requests)
    asked = [each.capacity for request in requests for each in request.alternatives]
    for device in sorted(device for device in devices if device.driver != DRIVER_NAME):
        listed = world.facts.catalog.device_table.of(device)
        if listed is not None and listed.facts.is_divided and asked:
            yield device, max(part_of(listed.facts, capacity) for capacity in asked)


class Outlook(Enum):
    """The state of what is held for a pod: being released, free, or in use by a pod that stays."""

    BEING_RELEASED = auto()
    IS_FREE = auto()
    IN_USE = auto()
    """In use by a pod that does not end, or was not evicted after all."""


def outlook(hold: Hold, world: WorldView, stuck: Collection[PodUid]) -> Outlook:
    """Whether what is held for a pod is free, or will be."""
    users = remaining_users(hold, world.facts)
    if not users:
        return Outlook.IS_FREE
    found = ((uid, world.facts.pod(uid)) for uid in users - {*stuck})
    terminating = {uid for uid, pod in found if pod is not None and pod.deleting}
    # For a hold of any device each terminating user may release it.
    comes = bool(terminating) if hold.is_of_any else terminating == users
    return Outlook.BEING_RELEASED if comes else Outlook.IN_USE
