"""Events of pods that wait at the gate: `kubectl describe pod` says what each waits for.

    ConditionWriter ─condition that is written─► one for each pod, a few in a second ─► recorder

A pod gets an Event when it begins to wait, and one more when its reason is another: as often as its
condition is written, and never more often. What lasts for a moment only gets none, such as the wait
for a claim that is about to be made of a template.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NoReturn

from kube.api import PODS, Event, ObjectReference
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.due import Due
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.objects.names import ADMIT, PodUid
from scheduler_plugin.waiting.decisions import GateCondition

WRITE_SECONDS = 5.0

LOOK_SECONDS = 1.0
MOST_IN_A_LOOK = 5
"""Events in each second, for all pods together. The recorder keeps up, and its series, which end
after six minutes of silence, are not pushed out by those of thousands of pods (`kube.events`)."""

SETTLED_SECONDS = 3.0
"""How long a condition must have stood before an Event repeats it."""


class GateEvents:
    """Takes the conditions that were written, and records them while `run` runs."""

    def __init__(
        self,
        world: WorldView,
        fence: Fence,
        record: Callable[[Event], None],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        """`record` takes Events and returns at once."""
        self._world = world
        self._fence = fence
        self._record = record
        self._monotonic = monotonic
        self._due: Due[PodUid] = Due()
        self._conditions: dict[PodUid, GateCondition] = {}

    def __len__(self) -> int:
        """How many pods are to get an Event."""
        return len(self._conditions)

    def written(self, condition: GateCondition) -> None:
        """A condition is stored by now; that of a pod that was told that it fits is no wait."""
        if condition.fits:
            return
        self._conditions[condition.uid] = condition
        if condition.uid not in self._due:
            self._due.set(condition.uid, self._monotonic() + SETTLED_SECONDS)

    async def run(self) -> NoReturn:
        """Record until cancelled. What was not recorded by then is kept for the next time."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Record for the pods that have waited for their Event for the longest time."""
        if self._fence.why_not(WRITE_SECONDS):
            return
        now, recorded = self._monotonic(), 0
        while recorded < MOST_IN_A_LOOK and (uid := self._due.pop(now)) is not None:
            recorded += self._tell(self._conditions.pop(uid))

    def _tell(self, condition: GateCondition) -> bool:
        """Record one; False where the pod does not wait for that any more."""
        pod = self._world.facts.pod(condition.uid)
        if pod is None or not pod.is_gated or pod.admission != condition.reason:
            return False
        about = ObjectReference.of(PODS, "Pod", pod)
        note = f"The pod waits at its scheduling gate. {condition.message}"
        self._record(Event.warning(about, str(condition.reason), ADMIT, note))
        return True
