"""Events of pods that wait at the gate: `kubectl describe pod` says what each waits for.

    ConditionWriter ─condition that is written─► one for each pod, a few in a second ─► recorder

A pod gets an Event when it begins to wait, and one more when its reason is another: as often as its
condition is written, and never more often. What lasts for a moment only gets none, such as the wait
for a claim that is about to be made of a template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from kube.api import PODS, Done, Event, ObjectReference, Reconciler, Result
from scheduler_plugin.api import ADMIT, Fence, GateCondition, PodUid, World


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEventSettings:
    """When Events of pods at the gate are recorded. All times are seconds.

    Attributes:
        write_seconds: How long the Lease must be ours before one is recorded.
        settled_seconds: How long a condition must have stood before an Event repeats it.
        pace_seconds: Between two Events, of all pods. The recorder keeps up, and its series, which
            end after six minutes of silence, are not pushed out by those of thousands of pods
            (`kube.events`).
    """

    write_seconds: float = 5.0
    settled_seconds: float = 3.0
    pace_seconds: float = 0.2


class GateEvents:
    """Takes the conditions that were written, and records them while `run` runs."""

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
        """How many pods are to get an Event."""
        return len(self._conditions)

    def written(self, condition: GateCondition) -> None:
        """A condition is stored by now; that of a pod that was told that it fits is no wait."""
        if not condition.fits:
            self._conditions[condition.uid] = condition
            self._queue.add_after(condition.uid, self._settings.settled_seconds)

    async def run(self) -> NoReturn:
        """Record until cancelled. What was not recorded by then is kept for the next time."""
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
