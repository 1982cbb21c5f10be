"""The output of `why`: why a pod runs or waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.asking.ages import ago
from scheduler_plugin.asking.shown import Key, Shown, condition_lines
from scheduler_plugin.asking.snapshot_times import taken_at
from scheduler_plugin.asking.snapshots import Snapshot, key_of
from scheduler_plugin.asking.tables import objects, why_text
from scheduler_plugin.asking.worlds import world_of
from scheduler_plugin.objects.names import QueueCondition
from scheduler_plugin.shapes import QueueFields
from scheduler_plugin.viewing.why import ENDED, RUNNING, Why, why


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """What an Event says of a pod.

    Attributes:
        when: When the Event happened last, as the API writes it.
    """

    when: str
    sentence: str


def no_pod(key: Key) -> str:
    """The sentence for a name that no pod and no Event has."""
    return f"there is no pod {'/'.join(key)}, and no Event is about one."


def shown_why(
    found: Why, now: datetime, events: Sequence[ReportedEvent] = (), not_read: Sequence[str] = ()
) -> Shown:
    """The output for a pod; programs get the times of Events, and people their ages.

    Args:
        found: All but the Events.
        now: The moment that ages refer to.
        events: The pod's Events, the oldest first.
        not_read: What the user may not read, and what follows from that.
    """
    exact = (f"{event.when} {event.sentence}" for event in events)
    aged = (f"{ago(event.when, now)} {event.sentence}" for event in events)
    plain = objects((replace(found, told=(*found.told, *exact)),))[0]
    plain["not_read"] = list(not_read)
    return Shown(plain, why_text(replace(found, told=(*found.told, *aged)), not_read))


def why_of(snapshot: Snapshot, key: Key) -> Why | None:
    """Why a pod runs or waits, with its conditions; None if the snapshot has no such pod."""
    found = why(world_of(snapshot), *key, taken_at(snapshot))
    if found is None:
        return None
    told = (*condition_lines(pod_in(snapshot, key)), *_queue_condition_lines(snapshot, found))
    return replace(found, told=told)


def _queue_condition_lines(snapshot: Snapshot, found: Why) -> Iterator[str]:
    """Why nothing is reclaimed for a waiting pod, as the Queue's condition says."""
    waits = found.reason not in (ENDED, RUNNING)
    for queue in snapshot.of("queues") if waits else ():
        fields = read_as(QueueFields, queue)
        for condition in fields.conditions if fields.metadata.name == found.queue else ():
            if condition.type == QueueCondition.QUOTA_UNMET and condition.message:
                yield f"Queue {found.queue}, {condition.type}: {condition.message}"


def pod_in(snapshot: Snapshot, key: Key) -> JsonObject:
    """The pod of a key; {} if the snapshot has none."""
    return next((pod for pod in snapshot.of("pods") if key_of(pod) == key), {})
