"""Who goes for a pod that waits for devices which its queue is guaranteed.

    want ──► owners with somebody who could go ──► none? ──► Nobody, and nothing was read
                 └─► devices that would do ──► enough are free, or about to be? ──► Nobody has to go
                         └─► held by whom, with room on their node once they are gone? ──► Take
                                                                         nobody ──► Nobody, and why

Of pods that go together each gets a place beside those of the others, or nobody goes. Slices and
nodes are read only when it comes to them: `Unread` asks for more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Nobody, Take
from scheduler_plugin.reclaiming.device_search import Search
from scheduler_plugin.reclaiming.device_wants import DeviceWant, device_want_of
from scheduler_plugin.reclaiming.free_places import Step
from scheduler_plugin.reclaiming.places.evidence import Evidence, Known
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Away
from scheduler_plugin.reclaiming.wants import NoWant


def decide_device(
    pod: PodView,
    world: World,
    now: datetime,
    known: Known,
    away: Away = NOBODY_AWAY,
) -> Iterator[Step]:
    """Decide about one pod that was tried in vain: None while there is more to look at.

    The last step is the decision. Before that it may be `Unread`, and goes on once that is in
    `known`. The other arguments are those of `room.decide`.
    """
    want = device_want_of(pod, world)
    if isinstance(want, NoWant):
        yield Nobody(want.sentence, want.unmet)
        return
    yield from Search(want, away, world, now, known).run()


def is_device_due(
    take: Take, world: World, now: datetime, evidence: Evidence, away: Away = NOBODY_AWAY
) -> bool:
    """As `room.is_due`: whether exactly these are still to go for those devices."""
    pod = world.facts.pod(take.pod.uid)
    want = device_want_of(pod, world) if pod is not None and pod.may_be_bound else None
    if not isinstance(want, DeviceWant):
        return False
    return Search(want, away, world, now, Known(evidence)).confirms(take)
