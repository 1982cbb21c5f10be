"""Quota is guaranteed: who was chosen is evicted, and the room is held for whom it was taken.

    lines that lack room ─► who has to go? (scheduler_plugin.reclaiming) ─► would all of them go?
        ─► hold, and condition of the waiting pod ─► evict each ─► told ─► bound, gone or time over

A hold follows the pod's condition, in every process and after every restart: so whoever leads next
finds what was begun, and decides afresh about what is missing. One decision is made and carried out
at a time, in small steps: kube-scheduler is answered in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder import apiserver_events
from binder.apiserver_evictions import EVICTED_SECONDS, HeldBackError, held_back_seconds
from binder.reclaiming.apiserver_device_wants import DeviceWants, nobody_seconds, not_read
from binder.reclaiming.apiserver_evidence import EvidenceReader
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from binder.reclaiming.turns import NEW_SECONDS, ROUND_SECONDS, Turns, by_turns
from kube.api import ApiError, Event, NotEvaluatedError
from scheduler_plugin.api import (
    DEVICE_RECLAIMED,
    Away,
    Decision,
    Due,
    FencedError,
    Nobody,
    OnItsWay,
    Outlook,
    PodChanged,
    PodToEvict,
    PodUid,
    PodView,
    QueueName,
    Rests,
    Take,
    Unread,
    World,
    WorldChange,
    hold_of,
    outlook,
)

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.2
"""How often it is looked who lacks room."""

REST = 5
"""How many times as long as a look took there is none, for those who had their turn before."""

SLICE_SECONDS = 0.001
"""How long a decision goes on before others have as much time."""

HOLD_SECONDS = 60.0
"""How long room is held for a pod that does not take it, from when it is free."""

ON_ITS_WAY_SECONDS = 1.0
"""How soon it is looked again whether a device is free that was on its way out."""

STUCK = timedelta(seconds=60)
"""How long after its grace a pod may still be on its way out; then it counts as one that stays."""

VAIN_SECONDS = 3600.0
"""How soon room is taken again for a pod that did not take what was held for it."""

CHOICES = 5
"""How many sets are asked for one pod in a row, where budgets hold them back."""


@dataclass(eq=False)
class Reclaimer:
    """Takes back what is guaranteed while `run` runs; to be run once the world is in sync.

    Attributes:
        lacking: The pods that lack room, the most urgent first.
        reader: Reads what has to be known before a device is taken.
        record: Takes Events and returns at once.
        clock: The time now.
        monotonic: The seconds of a clock that nobody sets.
    """

    writes: ReclaimWrites
    world: World
    lacking: Callable[[], Sequence[PodUid]]
    _: KW_ONLY
    reader: EvidenceReader
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]

    def __post_init__(self) -> None:
        self.told: Callable[[], None] = lambda: None
        """Called when what Queues say of themselves changed."""
        self._fence = self.writes.fence
        self._deadlines: Due[PodUid] = Due()
        self._vain: Rests[PodUid] = Rests()
        self._held_back: Rests[PodUid] = Rests(120.0)
        self._evicted: Due[PodUid] = Due()
        # When the grace of those that are being deleted is over.
        self._leaving: dict[PodUid, datetime] = {}
        self._taking: frozenset[PodUid] = frozenset()
        self._over: dict[PodUid, None] = {}
        # What was decided of pods for which nobody could go, and until when that holds.
        self._nobody: dict[PodUid, Nobody] = {}
        self._devices = DeviceWants(self.reader, self.world, self.clock, self.monotonic)
        self._turns = Turns()
        # When it may be looked next, while a long decision goes on, who came meanwhile.
        self._look_at: float | None = None
        self._decided_until: Rests[PodUid] = Rests(30.0)

    # What is heard.

    def begin(self) -> None:
        """Take up what is held for pods: before anybody else may get it."""
        for pod in list(self.world.facts.pods()):
            self._follow(pod.uid)

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        if isinstance(change, PodChanged):
            self._follow(change.uid)

    def _follow(self, uid: PodUid) -> None:
        """What is held is what the pod's condition says."""
        self._devices.follow(uid)
        pod, holds = self.world.facts.pod(uid), self.world.assumptions.holds
        self._leaving.pop(uid, None)
        if pod is not None and pod.leaves_at and not pod.ended:
            self._leaving[uid] = datetime.fromisoformat(pod.leaves_at)
        if pod is None or not pod.may_be_bound:
            self._turns.forget(uid)
        if pod is None or not pod.reclaiming or not pod.may_be_bound:
            if uid not in self._taking and uid in holds:
                self.world.end_hold(uid)
                self._deadlines.drop(uid)
            if pod is not None and pod.reclaiming and pod.is_bound:
                self._over[uid] = None
        elif uid not in holds and (hold := hold_of(pod, self.world)) is not None:
            self.world.hold(hold)
            self._deadlines.set(uid, self.monotonic() + HOLD_SECONDS)

    # What is done.

    async def run(self) -> NoReturn:
        """Reclaim until cancelled."""
        try:
            while True:
                await self._turn()
        finally:
            await self.reader.close()

    async def _turn(self) -> None:
        if self._fence.why_not(self.writes.write_seconds):
            await asyncio.sleep(1.0)
            return
        began = self.monotonic()
        try:
            await self._round()
            await self._rest(self.monotonic() - began)
        except Exception:  # An odd object must not end the process.
            logger.exception("a round ended early")
            await asyncio.sleep(max(TICK_SECONDS, REST * (self.monotonic() - began)))

    async def _rest(self, took: float) -> None:
        """Longer than a round took, unless somebody comes who was never asked."""
        until = self.monotonic() + REST * took
        await asyncio.sleep(max(TICK_SECONDS, min(2 * took, NEW_SECONDS)))
        while True:
            if self.monotonic() >= until or self._new() is not None:
                return
            await asyncio.sleep(TICK_SECONDS)

    async def _round(self) -> None:
        await self._end_holds()
        lacking = dict.fromkeys(self.lacking())
        for uid in [u for u in self._nobody if u not in lacking and u not in self._devices]:
            del self._nobody[uid]
        until = self.monotonic() + ROUND_SECONDS
        for uid in self._turns.order([*self._due(lacking)]):
            self._look_at = until
            await self._ask(uid, for_room=uid in lacking)
            if self.monotonic() > until:
                break
        self._look_at = None
        self._tell_unmet()

    def _due(self, lacking: Collection[PodUid], *, only_new: bool = False) -> Iterator[PodUid]:
        waiting = by_turns(lacking, (uid for uid in self._devices if uid not in lacking))
        due = (uid for uid in waiting if not only_new or self._turns.is_new(uid))
        return (uid for uid in due if self._may_ask(uid))

    def _new(self) -> PodUid | None:
        """The first that was never asked."""
        return next(self._due(dict.fromkeys(self.lacking()), only_new=True), None)

    async def _ask(self, uid: PodUid, *, for_room: bool) -> None:
        self._turns.asked(uid)
        pod = self.world.facts.pod(uid)
        if self._may_ask(uid) and pod is not None and pod.may_be_bound:
            self._note(uid, await self._serve(pod, for_room=for_room))

    def _may_ask(self, uid: PodUid) -> bool:
        moment = self.monotonic()
        # Asked five times a second of all that wait, who may be thousands: nearly all of them rest.
        if self._decided_until.until(uid, moment) is not None:
            return False
        pod = self.world.facts.pod(uid)
        # What one of a group did not take is taken for no other of it.
        group = self.world.facts.pods_in_group((pod.namespace, pod.group)) if pod else ()
        return all(self._vain.until(each, moment) is None for each in (uid, *group))

    def _note(self, uid: PodUid, decision: Decision) -> None:
        if isinstance(decision, Nobody):
            self._nobody[uid] = decision
            self._decided_until.again(uid, self.monotonic(), nobody_seconds)
        elif isinstance(decision, OnItsWay) and uid in self._devices:
            self._nobody.pop(uid, None)
            self._decided_until.rest(uid, self.monotonic(), ON_ITS_WAY_SECONDS)
        else:
            self._nobody.pop(uid, None)
            self._decided_until.forget(uid)

    def _tell_unmet(self) -> None:
        unmet: dict[QueueName, str] = {}
        for found in self._nobody.values():
            if found.unmet is not None:
                unmet.setdefault(found.unmet, found.sentence)
        if unmet != self.world.unmet:
            self.world.tell_unmet(unmet)
            self.told()

    async def _serve(self, pod: PodView, *, for_room: bool) -> Decision:
        """Free what a pod lacks, if anybody has to; what is held back sends to the next choice."""
        decision = await self._decided(pod, for_room=for_room)
        for _ in range(CHOICES):
            if not isinstance(decision, Take):
                break
            if not await self._is_held_back(decision, for_room=for_room):
                break
            decision = await self._decided(pod, for_room=for_room)
        return decision

    async def _decided(self, pod: PodView, *, for_room: bool) -> Decision:
        away = Away(self._now_evicted(), self._now_held_back(), self._now_stuck())
        try:
            return await self._devices.decided(pod, away, self._stepped, for_room=for_room)
        except (ApiError, NotEvaluatedError) as error:
            logger.warning("not read what would serve pod=%s: %s", pod, error)
            return not_read(pod, error)

    async def _stepped(self, steps: Iterator[Decision | Unread | None]) -> Decision | Unread:
        """Decide in steps, with as much time for others in between."""
        began = self.monotonic()
        for step in steps:
            if step is not None:
                return step
            took = self.monotonic() - began
            if took > SLICE_SECONDS:
                await asyncio.sleep(took)
                await self._let_in()
                began = self.monotonic()
        raise AssertionError("the last step is the decision")

    async def _let_in(self) -> None:
        """Within a long decision, not carried out yet: one that came meanwhile goes first."""
        at, self._look_at = self._look_at, None
        if at is not None and self.monotonic() >= at:
            at = self.monotonic() + ROUND_SECONDS
            if (uid := self._new()) is not None:
                await self._ask(uid, for_room=uid in self.lacking())
        self._look_at = at

    def _now_evicted(self) -> frozenset[PodUid]:
        self._evicted.take(self.monotonic())
        return frozenset(self._evicted)

    def _now_stuck(self) -> frozenset[PodUid]:
        """Pods that are being deleted and whose grace is long over: nobody waits for their end."""
        last = self.clock() - STUCK
        return frozenset(uid for uid, moment in self._leaving.items() if moment < last)

    def _now_held_back(self) -> frozenset[PodUid]:
        moment = self.monotonic()
        found = (pod.uid for pod in self.world.facts.pods()) if len(self._held_back) else ()
        return frozenset(uid for uid in found if self._held_back.until(uid, moment) is not None)

    async def _is_held_back(self, take: Take, *, for_room: bool) -> bool:
        """Carry it out; whether nothing was done since somebody may not be evicted now."""
        pods = [PodToEvict.of(pod) for pod in take.pods]
        try:
            await self.writes.evictor.ask(pods)
        except HeldBackError as error:
            self._hold_back(take, pods, error)
            return True
        except (ApiError, FencedError) as error:
            logger.warning("not reclaimed yet pod=%s: %s", take.pod, error)
            return False
        away = Away(self._now_evicted(), stuck=self._now_stuck())
        if self._devices.is_due(take, away, for_room=for_room):
            await self._take(take, pods)
        return False

    def _hold_back(self, take: Take, pods: Sequence[PodToEvict], error: HeldBackError) -> None:
        for pod in pods if error.pod is None else [error.pod]:
            self._held_back.again(pod.uid, self.monotonic(), held_back_seconds)
        logger.info("reclaim held back pod=%s: %s", take.pod, error)
        self._tell(apiserver_events.reclaim_held_back(take, str(error)))

    async def _take(self, take: Take, pods: Sequence[PodToEvict]) -> None:
        """The room is the pod's from here on; whoever comes after a restart sees its condition."""
        self._taking = frozenset(hold.pod for hold in take.holds)
        try:
            for hold in take.holds:
                self.world.hold(hold)
                self._deadlines.set(hold.pod, self.monotonic() + HOLD_SECONDS)
            await self._tell_held(take)
            await self._evict(take, pods)
        except (ApiError, FencedError) as error:
            logger.warning("not reclaimed pod=%s: %s", take.pod, error)
        finally:
            uids, self._taking = self._taking, frozenset()
            for uid in uids:
                self._follow(uid)

    async def _tell_held(self, take: Take) -> None:
        reason = DEVICE_RECLAIMED if take.hold.is_device else "Reclaimed"
        for hold in take.holds:
            pod = self.world.facts.pod(hold.pod)
            if pod is not None:
                await self.writes.tell(pod, holds=True, reason=reason, message=take.sentence)

    async def _evict(self, take: Take, pods: Sequence[PodToEvict]) -> None:
        """Evict one after the other while it is for somebody; who is left is decided about anew."""
        count = 0
        for pod in pods:
            if not any(hold.pod in self.world.assumptions.holds for hold in take.holds):
                return
            try:
                is_evicted = await self.writes.evictor.evict(pod)
            except HeldBackError as error:
                self._hold_back(take, [pod], error)
                return
            self._evicted.set(pod.uid, self.monotonic() + EVICTED_SECONDS)
            if is_evicted:
                self._tell_evicted(take, pod, is_first=count == 0)
                count += 1

    def _tell_evicted(self, take: Take, pod: PodToEvict, *, is_first: bool) -> None:
        if is_first:
            for event in apiserver_events.reclaimed(take, self.world.facts.tree):
                self._tell(event)
        self._tell(apiserver_events.pod_reclaimed(pod, take))

    def _tell(self, event: Event) -> None:
        apiserver_events.tell(event, self.record)

    # How it ends.

    async def _end_holds(self) -> None:
        """Of pods that are bound the condition is over; of others the time may be."""
        for uid in list(self._over):
            del self._over[uid]
            await self._end(uid, "Bound", "The pod is bound.")
        for uid in self._deadlines.take(self.monotonic()):
            pod = self.world.facts.pod(uid)
            if pod is None or uid not in self.world.assumptions.holds:
                continue
            found = outlook(pod, self.world, self._now_stuck())
            if found is Outlook.COMES:  # Pods that were evicted may take their time.
                self._deadlines.set(uid, self.monotonic() + HOLD_SECONDS)
                continue
            why = "What was to be free for it is not: who has it does not leave."
            if found is Outlook.IS_THERE:
                self._vain.rest(uid, self.monotonic(), VAIN_SECONDS)
                why = f"It was held for {HOLD_SECONDS:.0f} s, and the pod was not bound."
            await self._end(uid, "TimeOver", why)

    async def _end(self, uid: PodUid, reason: str, message: str) -> None:
        pod = self.world.facts.pod(uid)
        self.world.end_hold(uid)
        if pod is None:
            return
        with suppress(ApiError, FencedError):
            await self.writes.tell(pod, holds=False, reason=reason, message=message)
            return
        # The condition stands: it is taken up again, and ended then.
        self._follow(uid)
