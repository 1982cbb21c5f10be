"""The API server's waiting pods: who may go is decided soon after each change, and let go.

    World ───changes──┐                     ┌─► GateRemovals ─────► pods, pods/status
    Filter ─refusals──┴─► GateKeeper ───────┴─► ConditionWriter ──► pods/status
                                                       └─► GateEvents ─► recorder

It works while the Lease is ours, in one *term* after another: each begins with what the API shows,
and knows nothing of those before. Filter and Bind go first: between two decisions there is at least
as much time for others as the decision took, and no decision goes on for long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NoReturn

from kube.api import Event
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    OtherChanged,
    PodChanged,
    WorldChange,
)
from scheduler_plugin.cluster.apiserver_gate_events import GateEvents
from scheduler_plugin.cluster.apiserver_gate_writes import WRITE_SECONDS, GateWrites
from scheduler_plugin.cluster.apiserver_waiting_pods import ConditionWriter, GateRemovals
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.reclaiming.places.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.places.device_counts import too_few_for
from scheduler_plugin.waiting.away.untried_pods import believe, untried_pods
from scheduler_plugin.waiting.decisions import WaitingPod
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.lines.refused_pods import RefusedPods
from scheduler_plugin.waiting.turns.aging import FIRST_TURN

logger = logging.getLogger(__name__)

IN_ONE_GO = 100
"""How many pods are judged at the beginning before others have their turn."""

TICK_SECONDS = 0.05
"""What lies between two decisions at least."""

FENCED_SECONDS = 1.0
"""How soon it is asked again whether the Lease is ours."""

SLICE_SECONDS = 0.0005
"""How long a decision goes on before others have their turn, beside the step that it is at."""

REVIEW_REST = 10
"""How many times as long as a review of all pods took there is none: classes may change often."""


class GateWriter:
    """Lets waiting pods go while `run` runs; to be run once the world is in sync."""

    def __init__(
        self,
        writes: GateWrites,
        refusals: RefusedPods,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
        *,
        record: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """`record` takes the Events of pods that wait at the gate, and returns at once."""
        self._writes = writes
        self._fence = writes.fence
        self._refusals = refusals
        self._clock = clock
        self._monotonic = monotonic
        # It outlives a term: whose condition is written gets no second one in the next.
        self._events = GateEvents(writes.cluster.world, writes.fence, record, monotonic)
        self._term: _Term | None = None
        writes.cluster.world.assumptions.subscribe(self._assumed)
        refusals.changed = self._tried

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        world = self._writes.cluster.world
        if isinstance(change, PodChanged) and not world.may_be_bound(change.uid):
            self._refusals.forget(change.uid)
        if self._term is not None:
            self._term.changed(change)

    def _assumed(self, claims: Iterable[ClaimUid]) -> None:
        if self._term is not None:
            self._term.assumed(claims)

    def _tried(self, uid: PodUid) -> None:
        if self._term is not None:
            self._term.tried(uid)

    def why_not_told(self) -> str:
        """Why nobody knows here who waits; "" where it is known."""
        if self._term is not None:
            return ""
        return self._fence.why_not(WRITE_SECONDS) or "Who waits is not known yet."

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""
        if self._term is None:
            return self.why_not_told()
        return self._term.keeper.waiting(namespace, name)

    def waiting_pods(self) -> Mapping[QueueName, int]:
        """How many pods of each queue wait; none while that is not known here."""
        return self._term.keeper.waiting_pods() if self._term is not None else {}

    def lacking_room(self) -> list[PodUid]:
        """The pods at the head of lines that were refused for a limit; none while not told."""
        return self._term.keeper.lacking_room() if self._term is not None else []

    async def run(self) -> NoReturn:
        """One term after another, until cancelled."""
        while True:
            if not self._fence.why_not(WRITE_SECONDS):
                try:
                    self._term = self._new_term()
                    await self._term.run()
                except Exception:  # The next term begins with what the API shows.
                    logger.exception("a term ended early")
                finally:
                    self._term = None
            await asyncio.sleep(FENCED_SECONDS)

    def _new_term(self) -> _Term:
        return _Term(self._writes, self._refusals, self._clock, self._monotonic, self._events)


class _Term:
    """The time from one moment at which the Lease is ours until it may not be."""

    def __init__(
        self,
        writes: GateWrites,
        refusals: RefusedPods,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        events: GateEvents,
    ) -> None:
        self._fence = writes.fence
        self._events = events
        self._clock = clock
        self._monotonic = monotonic
        self._world = writes.cluster.world
        accepted = AcceptedDevices(writes.cluster.stock)
        too_few = partial(too_few_for, world=self._world, accepted=accepted)
        self.keeper = GateKeeper(self._world, refusals, first_turn=FIRST_TURN, too_few=too_few)
        self._removals = GateRemovals(writes, self.keeper, clock, monotonic, self._removed)
        self._conditions = ConditionWriter(writes, self.keeper, self._is_busy, events.written)
        self._assumed: dict[ClaimUid, None] = {}
        self._asked = asyncio.Event()
        self._needs_review = False
        self._review_began: float | None = None
        self._next_review = 0.0

    # What is heard.

    def changed(self, change: WorldChange) -> None:
        if isinstance(change, OtherChanged):
            self._needs_review = True
        else:
            self.keeper.note(change)
        self._conditions.changed(change)
        self._asked.set()

    def assumed(self, claims: Iterable[ClaimUid]) -> None:
        """Filter or Bind believes in a pod, or no longer does."""
        self._assumed |= dict.fromkeys(claims)
        self._asked.set()

    def tried(self, uid: PodUid) -> None:
        """kube-scheduler asked about a pod that is refused, or was until now."""
        self.keeper.tried(uid, self._monotonic())
        self._asked.set()

    def _is_busy(self) -> bool:
        """Whether somebody is let go, or may be at once: others are told later why they wait."""
        return self._removals.is_busy() or self.keeper.is_busy

    def _removed(self) -> None:
        """There is room for more removals, and perhaps for what has to be told."""
        self._conditions.ask()
        self._asked.set()

    # What is done.

    async def run(self) -> None:
        """Decide until the Lease may not be ours for as long as a write takes."""
        await self._believe()
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(self._removals.run()),
                tasks.create_task(self._conditions.run()),
                tasks.create_task(self._events.run()),
            ]
            while not self._fence.why_not(WRITE_SECONDS):
                await self._step()
            for task in beside:
                task.cancel()
        self._removals.drop()

    async def _believe(self) -> None:
        for number, uid in enumerate(untried_pods(self._world), start=1):
            believe(uid, self._world, self._clock())
            if number % IN_ONE_GO == 0:
                await asyncio.sleep(0)

    async def _step(self) -> None:
        """Decide, leave others as much time, and wait until something may have changed."""
        began = _now()
        self._review(began)
        while self._removals.has_room:
            self._decide()
            if not self.keeper.has_more or _now() - began > SLICE_SECONDS:
                break
        took = _now() - began
        if self._removals.has_room and self.keeper.has_more:
            await asyncio.sleep(took)
            return
        await asyncio.sleep(max(TICK_SECONDS, took))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds_to_next_look()):
                await self._asked.wait()

    def _review(self, now: float) -> None:
        """Take in what all pods may depend on, all such changes at once."""
        if self.keeper.is_reviewing:
            return
        if self._review_began is not None:
            self._next_review = now + REVIEW_REST * (now - self._review_began)
            self._review_began = None
        if self._needs_review and now >= self._next_review:
            self._needs_review = False
            self._review_began = now
            self.keeper.note(OtherChanged())

    def _decide(self) -> None:
        """Nothing comes in between: what is noted until here is decided about."""
        for uid in self._assumed:
            self.keeper.note(ClaimChanged(uid))
        if self._asked.is_set():
            self.keeper.look_again()
        self._removals.add(self.keeper.decide(self._clock(), self._monotonic(), 1))
        # The keeper knows of its own assumptions.
        self._assumed.clear()
        self._asked.clear()
        self._conditions.ask()

    def _seconds_to_next_look(self) -> float:
        seconds = FENCED_SECONDS
        if self._needs_review:
            seconds = min(seconds, self._next_review - _now())
        look = self.keeper.next_look()
        if look is not None:
            seconds = min(seconds, look - self._monotonic())
        return max(0.0, seconds)


def _now() -> float:
    return asyncio.get_running_loop().time()
