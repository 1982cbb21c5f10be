"""One term: decisions about waiting pods while this process has the Lease.

Filter and Bind go first: each decision is short, and after it other tasks have at least as much
time as it took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from binder.gates.apiserver_conditions import ConditionSettings, ConditionWriter
from binder.gates.apiserver_gate_events import GateEventSettings
from binder.gates.apiserver_gate_removals import GateRemovals, RemovalSettings
from binder.gates.apiserver_gate_writes import GateWrites
from kube.reconciling.api import After, Done, Failed, Reconciler, Result
from scheduler_plugin.accounting.api import ClaimChanged, OtherChanged, WorldChange
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.waiting.api import (
    GateCondition,
    RefusedPods,
    gate_keeper,
    restore_assumption,
    untried_pods,
)

DECIDE = "decide"
"""The only key: the next admission depends on all waiting pods."""

PODS_BETWEEN_PAUSES = 100
"""The number of assumptions restored between two pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """The pace of decisions, in seconds.

    Attributes:
        tick_seconds: The shortest pause between two decisions.
        slice_seconds: How long a decision goes on, without its last step, before other tasks run.
        look_seconds: The time to the next decision without a change, and between two checks of
            the Lease.
        review_rest: The pause after a review of all pods, as a multiple of its duration:
            DeviceClasses may change often.
    """

    tick_seconds: float = 0.05
    slice_seconds: float = 0.0005
    look_seconds: float = 1.0
    review_rest: float = 10.0
    removals: RemovalSettings = field(default_factory=RemovalSettings)
    conditions: ConditionSettings = field(default_factory=ConditionSettings)
    events: GateEventSettings = field(default_factory=GateEventSettings)


@dataclass(eq=False)
class Term:
    """The time during which this process has the Lease, without a break.

    Attributes:
        writes: Writes pods.
        refusals: The pods without a gate that Filter or Bind refused.
        clock: The wall-clock time.
        monotonic: The monotonic clock, in seconds.
        written: Called with each written condition that says what a pod waits for.
    """

    writes: GateWrites
    refusals: RefusedPods
    _: KW_ONLY
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    written: Callable[[GateCondition], None]
    settings: GateSettings

    def __post_init__(self) -> None:
        cluster = self.writes.cluster
        self._world = cluster.world
        self.keeper = gate_keeper(cluster.world, cluster.inventory, self.refusals)
        self._removals = GateRemovals(
            self.writes,
            self.keeper,
            clock=self.clock,
            monotonic=self.monotonic,
            done=self._removed,
            settings=self.settings.removals,
        )
        self._conditions = ConditionWriter(
            self.writes,
            self.keeper,
            must_wait=self._is_busy,
            written=self.written,
            settings=self.settings.conditions,
        )
        self._decisions: Reconciler[str] = Reconciler(
            "gates", self._reconcile, why_not=self.writes.why_not
        )
        self._error: Exception | None = None
        self._assumed: dict[ClaimUid, None] = {}
        self._has_changes = False
        self._needs_review = False
        self._review_began: float | None = None
        self._next_review = 0.0

    # Events.

    def changed(self, change: WorldChange) -> None:
        if isinstance(change, OtherChanged):
            self._needs_review = True
        else:
            self.keeper.note(change)
        self._conditions.changed(change)
        self._trigger()

    def assumed(self, claims: Iterable[ClaimUid]) -> None:
        """Filter or Bind assumed a pod with these claims, or forgot one."""
        self._assumed |= dict.fromkeys(claims)
        self._trigger()

    def tried(self, uid: PodUid) -> None:
        """kube-scheduler tried a pod that is refused, or was until now."""
        self.keeper.tried(uid, self.monotonic())
        self._trigger()

    def _trigger(self) -> None:
        if not self._has_changes:
            self._has_changes = True
            self._decisions.add(DECIDE)

    def _is_busy(self) -> bool:
        """Whether admissions are written or decided: they go before conditions."""
        return self._removals.is_busy() or self.keeper.is_busy

    def _removed(self) -> None:
        """There is room for more admissions, and perhaps for conditions."""
        self._has_changes = True
        self._decisions.add(DECIDE)
        self._conditions.enqueue()

    # Decisions.

    async def run(self) -> None:
        """Decide until the Lease may end before a write does.

        Raises the error of a decision: the keeper may have processed a change by half.
        """
        await self._restore()
        self._decisions.add(DECIDE)
        async with asyncio.TaskGroup() as tasks:
            working = (self._removals.run(), self._conditions.run(), self._decisions.run())
            beside = [tasks.create_task(each) for each in working]
            while self._error is None and not self.writes.why_not():  # noqa: ASYNC110  A Lease ends silently.
                await asyncio.sleep(self.settings.look_seconds)
            for task in beside:
                task.cancel()
        self._removals.drop()
        if self._error is not None:
            raise self._error

    async def _restore(self) -> None:
        """Restore the assumptions of pods that were admitted before and not tried yet."""
        for number, uid in enumerate(untried_pods(self._world), start=1):
            restore_assumption(uid, self._world, self.clock())
            if number % PODS_BETWEEN_PAUSES == 0:
                await asyncio.sleep(0)

    async def _reconcile(self, _: str) -> Result:
        if self._error is not None:
            return Done()
        try:
            return self._decide_for_a_slice()
        except Exception as error:  # noqa: BLE001  `run` ends with it and raises it.
            self._error = error
            return Failed(error)

    def _decide_for_a_slice(self) -> Result:
        """Decide for a while, leave other tasks as much time, and continue after a change."""
        began = _now()
        self._review(began)
        while self._removals.has_room:
            self._decide()
            if not self.keeper.has_more or _now() - began > self.settings.slice_seconds:
                break
        took = _now() - began
        if self._removals.has_room and self.keeper.has_more:
            return After(0.0, pause=took)
        return After(self._seconds_to_next_look(), pause=max(self.settings.tick_seconds, took))

    def _review(self, now: float) -> None:
        """Pass the changes on which all pods may depend to the keeper, as one change."""
        if self.keeper.is_reviewing:
            return
        if self._review_began is not None:
            took = now - self._review_began
            self._next_review = now + self.settings.review_rest * took
            self._review_began = None
        if self._needs_review and now >= self._next_review:
            self._needs_review = False
            self._review_began = now
            self.keeper.note(OtherChanged())

    def _decide(self) -> None:
        """Decide one step, without a pause: all events until here are known to the keeper."""
        for uid in self._assumed:
            self.keeper.note(ClaimChanged(uid))
        if self._has_changes:
            self.keeper.look_again()
        self._removals.add(self.keeper.decide(self.clock(), self.monotonic(), 1))
        # The keeper knows its own assumptions.
        self._assumed.clear()
        self._has_changes = False
        self._conditions.enqueue()

    def _seconds_to_next_look(self) -> float:
        seconds = self.settings.look_seconds
        if self._needs_review:
            seconds = min(seconds, self._next_review - _now())
        look = self.keeper.next_look()
        if look is not None:
            seconds = min(seconds, look - self.monotonic())
        return max(0.0, seconds)


def _now() -> float:
    return asyncio.get_running_loop().time()
