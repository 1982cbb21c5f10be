"""Who goes for a pod that waits for room: so that it finds a place, too, once there is some.

room.decide ──► Take ──► would the pod find devices and a node then? ──► Take
                            └─► no: who leaves it a place? ──► they first, then as before
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Take
from scheduler_plugin.reclaiming.device_wants import DeviceWant, seekers_of
from scheduler_plugin.reclaiming.devices import Search
from scheduler_plugin.reclaiming.free_places import Step
from scheduler_plugin.reclaiming.places.evidence import Evidence, Known, Unread
from scheduler_plugin.reclaiming.room import decide, is_due
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Away
from scheduler_plugin.reclaiming.wants import Nobody, names_of, together_with


def decide_room(
    pod: PodView,
    world: WorldView,
    now: datetime,
    known: Known,
    away: Away = NOBODY_AWAY,
) -> Iterator[Step]:
    """Decide about one pod that lacks room; as `decide_device`."""
    found = None
    for found in decide(pod, world, now, away):
        if not isinstance(found, Take):
            yield found
    if not isinstance(found, Take):
        return
    want = room_want_of(found, world)
    if isinstance(want, str):
        yield Nobody(f"{found.hold.name} waits for room, and {want}", found.hold.queue)
        return
    if known.evidence is None:
        yield Unread((), want.seekers)
    if doubt := known.now.doubt:
        yield Nobody(f"{want} waits for room, and nobody goes: {doubt}.", found.hold.queue)
        return
    search = Search(want, away, world, now, known)
    yield from search.with_nodes(partial(_placed, found, want, search))


def is_room_due(
    take: Take, world: WorldView, now: datetime, evidence: Evidence, away: Away = NOBODY_AWAY
) -> bool:
    """As `room.is_due`, and whether there would be a place still."""
    want = room_want_of(take, world)
    if isinstance(want, str) or not is_due(take, world, now, away):
        return False
    search = Search(want, away, world, now, Known(evidence))
    return search.has_places(take)


def room_want_of(take: Take, world: WorldView) -> DeviceWant | str:
    """What those have to find that wait for room; or what is in doubt."""
    pods = together_with(take.pod, world)
    if isinstance(pods, Nobody):
        return pods.sentence
    seekers = seekers_of(pods, world)
    if isinstance(seekers, str):
        return seekers
    keys = dict.fromkeys(key for hold in take.holds for key, _ in hold.usage)
    return DeviceWant(seekers=seekers, holds=take.holds, keys=tuple(keys))


def _placed(take: Take, want: DeviceWant, search: Search) -> Iterator[Step]:
    places = search.left_places(take.victims) or (yield from search.free_places(take.victims))
    if places is not None:
        yield replace(take, places=tuple(places))
        return
    owners = yield from search.owners()
    plan = yield from search.plan(owners)
    if plan is None:
        why = f"it would find no place once there is some, and nobody {search.who_stays()}"
        yield Nobody(f"{names_of(want.pods)} waits for room: {why}", take.hold.queue)
        return
    places, first = plan
    for found in decide(take.pod, search.world, search.now, search.away, tuple(first)):
        if isinstance(found, Take):
            holds = search.holds_with(places, first)
            yield replace(found, holds=holds, places=tuple(places))
        else:
            yield found
