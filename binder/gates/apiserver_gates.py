"""The API server's waiting pods: who may go is decided soon after each change, and let go.

    World ───changes──┐                     ┌─► GateRemovals ─────► pods, pods/status
    Filter ─refusals──┴─► GateKeeper ───────┴─► ConditionWriter ──► pods/status
                                                       └─► GateEvents ─► recorder

It works while the Lease is ours, in one *term* after another (`apiserver_gate_terms`): each begins
with what the API shows, and knows nothing of those before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import NoReturn

from binder.gates.apiserver_gate_events import GateEvents
from binder.gates.apiserver_gate_terms import GateSettings, Term
from binder.gates.apiserver_gate_writes import GateWrites
from kube.api import After, Backoff, Event, Reconciler, Result
from scheduler_plugin.api import (
    ClaimUid,
    PodChanged,
    PodUid,
    QueueName,
    RefusedPods,
    WaitingPod,
    WorldChange,
)

TERM = "term"
"""The only key."""


@dataclass(eq=False)
class GateWriter:
    """Lets waiting pods go while `run` runs; to be run once the world is in sync.

    Attributes:
        writes: Writes pods.
        refusals: The pods without a gate that kube-scheduler was refused.
        clock: The time now.
        monotonic: The seconds of a clock that is never set.
        record: Takes the Events of pods that wait at the gate, and returns at once.
    """

    writes: GateWrites
    refusals: RefusedPods
    clock: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic  # noqa: TID251  The shell reads clocks.
    _: KW_ONLY
    record: Callable[[Event], None] = lambda _: None
    settings: GateSettings = field(default_factory=GateSettings)

    def __post_init__(self) -> None:
        world, fence = self.writes.cluster.world, self.writes.fence
        # It outlives a term: a condition that was written gets no second Event in the next.
        self._events = GateEvents(world, fence, self.record, self.settings.events)
        self._term: Term | None = None
        # Pods wait at the gate while there is no term: after an error the next comes soon.
        soon = Backoff(self.settings.look_seconds, self.settings.look_seconds)
        self._terms: Reconciler[str] = Reconciler(
            "gate-terms", self._reconcile, why_not=self.writes.why_not, backoff=soon
        )
        world.assumptions.subscribe(self._assumed)
        self.refusals.changed = self._tried

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        world = self.writes.cluster.world
        if isinstance(change, PodChanged) and not world.may_be_bound(change.uid):
            self.refusals.forget(change.uid)
        if self._term is not None:
            self._term.changed(change)

    def _assumed(self, claims: Iterable[ClaimUid]) -> None:
        if self._term is not None:
            self._term.assumed(claims)

    def _tried(self, uid: PodUid) -> None:
        if self._term is not None:
            self._term.tried(uid)

    def why_not_told(self) -> str:
        """Why it is not known here which pods wait; "" where it is."""
        if self._term is not None:
            return ""
        return self.writes.why_not() or "Who waits is not known yet."

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
        self._terms.add(TERM)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._events.run())
            tasks.create_task(self._terms.run())
        raise AssertionError("reconcilers never end")

    async def _reconcile(self, _: str) -> Result:
        self._term = Term(
            self.writes,
            self.refusals,
            clock=self.clock,
            monotonic=self.monotonic,
            written=self._events.written,
            settings=self.settings,
        )
        try:
            await self._term.run()
        finally:
            self._term = None
        return After(self.settings.look_seconds)
