"""Waiting pods on the API server: soon after each change, pods are admitted and conditions written.

    World ───changes──┐                     ┌─► GateRemovals ─────► pods, pods/status
    Filter ─refusals──┴─► GateKeeper ───────┴─► ConditionWriter ──► pods/status
                                                       └─► GateEvents ─► recorder
          └─► GroupGates ───────────────────────────────────────────► pods

It works while this process has the Lease, in one *term* after another (`apiserver_gate_terms`).
Each term begins with the state of the API server, and has no state of earlier terms.
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
from binder.gates.apiserver_group_gates import GroupGates
from kube.backoff import Backoff
from kube.events.api import Event
from kube.reconciling.api import After, Reconciler, Result
from scheduler_plugin.accounting.api import PodChanged, WorldChange
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.waiting.api import RefusedPods, WaitingPod

TERM = "term"
"""The only key."""


@dataclass(eq=False)
class GateWriter:
    """Admits waiting pods while `run` runs; to be run once the world is in sync.

    Attributes:
        writes: Writes pods.
        refusals: The pods without a gate that Filter or Bind refused.
        clock: The wall-clock time.
        monotonic: The monotonic clock, in seconds.
        record: Takes the Events of pods at the gate, and returns at once.
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
        # It outlives a term, so that a written condition gets no second Event in the next term.
        self._events = GateEvents(world, fence, self.record, self.settings.events)
        self._groups = GroupGates(self.writes)
        self._term: Term | None = None
        # Without a term all pods wait at the gate: after an error the next term begins soon.
        soon = Backoff(self.settings.look_seconds, self.settings.look_seconds)
        self._terms: Reconciler[str] = Reconciler(
            "gate-terms", self._reconcile, why_not=self.writes.why_not, backoff=soon
        )
        world.assumptions.subscribe(self._assumed)
        self.refusals.changed = self._tried

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        world = self.writes.cluster.world
        if isinstance(change, PodChanged):
            self._groups.changed(change.uid)
            if not world.may_be_bound(change.uid):
                self.refusals.forget(change.uid)
        if self._term is not None:
            self._term.changed(change)

    def _assumed(self, claims: Iterable[ClaimUid]) -> None:
        if self._term is not None:
            self._term.assumed(claims)

    def _tried(self, uid: PodUid) -> None:
        if self._term is not None:
            self._term.tried(uid)

    def why_unknown(self) -> str:
        """Why this process does not know which pods wait; "" where it does."""
        if self._term is not None:
            return ""
        return self.writes.why_not() or "The waiting pods are not known yet."

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """The state of a waiting pod now; a sentence where the pod does not wait."""
        if self._term is None:
            return self.why_unknown()
        return self._term.keeper.waiting(namespace, name)

    def waiting_pods(self) -> Mapping[QueueName, int]:
        """The number of waiting pods of each queue; empty while this process does not know."""
        return self._term.keeper.waiting_pods() if self._term is not None else {}

    def short_of_room(self) -> list[PodUid]:
        """The pods that lack room or devices; empty while this process does not know."""
        return self._term.keeper.short_of_room() if self._term is not None else []

    async def run(self) -> NoReturn:
        """Run one term after another until cancelled."""
        self._terms.add(TERM)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._events.run())
            tasks.create_task(self._groups.run())
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
