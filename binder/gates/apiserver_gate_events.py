"""Events of pods at the gate: `kubectl describe pod` shows what a pod waits for.

    ConditionWriter ─written condition─► one for each pod, a few per second ─► recorder

A pod gets an Event when it begins to wait, and one more for each new reason: never more often than
its condition is written. A reason that lasts for a moment gets none, for example the wait for a
claim that is being created from a template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from kube.events.api import Event, ObjectReference
from kube.kinds import PODS
from kube.reconciling.api import Done, Reconciler, Result
from scheduler_plugin.accounting.api import World
from scheduler_plugin.objects.api import Fence
from scheduler_plugin.objects.names import ADMIT, PodUid
from scheduler_plugin.waiting.api import GateCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEventSettings:
    """The pace of Events of pods at the gate, in seconds.

    Attributes:
        write_seconds: The remaining time of the Lease that is needed to record an Event.
        settled_seconds: The age of a condition at which an Event repeats it.
        pace_seconds: The pause between two Events of any pods. With it the recorder keeps up, and
            thousands of pods do not evict its series, which end after six minutes of silence
            (`kube.events`).
    """

    write_seconds: float = 5.0
    settled_seconds: float = 3.0
    pace_seconds: float = 0.2


class GateEvents:
    """Takes written conditions, and records Events for them while `run` runs."""

    def __init__(
        self,
        world: World,
        fence: Fence,
        record: Callable[[Event], None],
        settings: GateEventSettings = GateEventSettings(),
    ) -> None:
        """`record` takes Events and returns at once."""
        self._world = world
        self._record = record
        self._settings = settings
        self._conditions: dict[PodUid, GateCondition] = {}
        why_not = partial(fence.why_not, settings.write_seconds)
        self._queue: Reconciler[PodUid] = Reconciler(
            "gate-events", self._reconcile, why_not=why_not
        )

    def __len__(self) -> int:
        """The number of pods that are to get an Event."""
        return len(self._conditions)

    def written(self, condition: GateCondition) -> None:
        """A condition was written. One that says that the pod fits gets no Event."""
        if not condition.fits:
            self._conditions[condition.uid] = condition
            self._queue.add_after(condition.uid, self._settings.settled_seconds)

    async def run(self) -> NoReturn:
        """Record until cancelled. Conditions without an Event are kept for the next run."""
        await self._queue.run()

    async def _reconcile(self, uid: PodUid) -> Result:
        condition, pod = self._conditions.pop(uid, None), self._world.facts.pod(uid)
        if condition is None or pod is None:
            return Done()
        if not pod.is_gated or pod.admission != condition.reason:
            return Done()
        about = ObjectReference.of(PODS, "Pod", pod)
        note = f"The pod waits at its scheduling gate. {condition.message}"
        self._record(Event.warning(about, str(condition.reason), ADMIT, note))
        return Done(pause=self._settings.pace_seconds)
