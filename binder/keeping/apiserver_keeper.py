"""The keeper of claims on the API server: what a claim needs next is done, soon and for certain.

    changed claim ─┐                                 ┌─ later: an alarm
    alarm ─────────┼─► asked ─► what does it need? ──┤
    all, each minute┘   (scheduler_plugin.keeping)   └─ now: to do ─► API server ─► changed claim

It hears of claims that changed, and of those that no decision in flight is about any more. Because
it may not have been there, or may have been told not to write, it looks at all claims when it
starts, when Queues changed, and every minute.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import NoReturn

from binder import apiserver_events
from binder.apiserver_evictions import EVICTED_SECONDS, HeldBackError, held_back_seconds
from binder.keeping.agenda import Agenda
from binder.keeping.apiserver_steps import Steps
from kube.api import (
    ApiError,
    Backoff,
    ConflictError,
    NotFoundError,
    PermanentError,
    naming,
)
from scheduler_plugin.api import (
    ClaimUid,
    EvictForeign,
    Fence,
    FencedError,
    LookAgain,
    QueueName,
    Rests,
    Step,
    lost_queue,
)

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""How many claims are written at one time: bindings come first."""

IN_ONE_GO = 50
"""How many claims are looked at before others have their turn."""

SETTLE_SECONDS = 0.2
"""How long changes are gathered: a binding changes a claim several times in a row."""

ALL_AGAIN_SECONDS = 5.0
"""How long it rests after a look at all claims, however many Queues change."""

FENCED_SECONDS = 1.0
"""How soon it is asked again whether the Lease is ours."""

BUSY_SECONDS = 1.0
"""How soon a claim is looked at again that a binding was using."""

_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=30.0)
_FORGOTTEN_SECONDS = 120.0


@dataclass(eq=False)
class ClaimKeeper:
    """Does for claims what they need beside bindings; to be run once the world is in sync.

    Attributes:
        steps: Carries it out.
        fence: Asked before each round of writes, and again before each write.
        is_busy: Whether a binding that uses the claim is under way.
        monotonic: The seconds of a clock that nobody sets.
        write_seconds: How long one write may take.
        recheck_seconds: How often all claims are looked at.
    """

    steps: Steps
    fence: Fence
    _: KW_ONLY
    is_busy: Callable[[ClaimUid], bool]
    monotonic: Callable[[], float]
    write_seconds: float = 2.0
    recheck_seconds: float = 60.0

    def __post_init__(self) -> None:
        self._world = self.steps.upkeep.world
        self.agenda = Agenda()
        # Claims whose foreign pods were evicted, or are not for now.
        self._rests: Rests[ClaimUid] = Rests(_FORGOTTEN_SECONDS)
        self._told: dict[ClaimUid, QueueName] = {}
        self._to_look = asyncio.Event()
        self._to_do = asyncio.Event()
        self._all = asyncio.Event()
        self._failures = 0

    def changed(self, claim_uids: Iterable[ClaimUid]) -> None:
        """Claims changed, or pods or decisions that they depend on. Costs next to nothing."""
        if self.agenda.ask(claim_uids):
            self._to_look.set()

    def queues_changed(self) -> None:
        """What Queues say may concern any claim."""
        self._all.set()

    async def run(self) -> None:
        """Keep until cancelled."""
        unsubscribe = self._world.assumptions.subscribe(self._assumed)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look_at_all())
                group.create_task(self._look())
                for _ in range(AT_ONCE):
                    group.create_task(self._keep())
        finally:
            unsubscribe()

    def _assumed(self, claims: Iterable[ClaimUid]) -> None:
        """A decision that ends without a binding is to be seen on nothing in the API."""
        self.changed([uid for uid in claims if uid not in self._world.assumptions])

    async def _look_at_all(self) -> NoReturn:
        while True:
            self._all.clear()
            self.changed([claim.uid for claim in self._world.facts.claims()])
            seconds = self.recheck_seconds * random.uniform(0.9, 1.0)
            rest = min(ALL_AGAIN_SECONDS, seconds)
            await asyncio.sleep(rest)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds - rest):
                    await self._all.wait()

    async def _look(self) -> NoReturn:
        while True:
            await self._until_asked()
            await asyncio.sleep(SETTLE_SECONDS)
            self._to_look.clear()
            for number, uid in enumerate(self.agenda.take_asked(self.monotonic())):
                self._look_at(uid)
                if number % IN_ONE_GO == IN_ONE_GO - 1:
                    await asyncio.sleep(0)

    async def _until_asked(self) -> None:
        moment = self.agenda.next_alarm()
        seconds = max(0.0, moment - self.monotonic()) if moment is not None else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._to_look.wait()

    def _look_at(self, uid: ClaimUid) -> None:
        try:
            self._tell_lost(uid)
            if self._step(uid) is not None:
                self.agenda.put(uid)
                self._to_do.set()
        except Exception:  # An odd claim must not cost the others their keeper.
            logger.exception("claim not looked at uid=%s", uid)

    def _step(self, uid: ClaimUid) -> Step | None:
        """What to do now; where that comes later, an alarm is set."""
        now, moment = self.steps.clock(), self.monotonic()
        step = self.steps.upkeep.next_step(uid, now)
        rest = self._rests.until(uid, moment)
        if not isinstance(step, EvictForeign):
            self._rests.forget(uid)
        elif rest is not None:
            self._set_alarm(uid, rest)
            return None
        if isinstance(step, LookAgain):
            self._set_alarm(uid, moment + (step.at - now).total_seconds())
            return None
        self.agenda.drop_alarm(uid)
        return step

    def _set_alarm(self, uid: ClaimUid, moment: float) -> None:
        self.agenda.set_alarm(uid, moment)
        # Whoever waits for the next alarm may be waiting for a later one.
        self._to_look.set()

    def _tell_lost(self, uid: ClaimUid) -> None:
        """Once, for as long as the queue stays lost."""
        found = lost_queue(uid, self._world)
        if found is None:
            self._told.pop(uid, None)
        elif self._told.get(uid) != found.queue and not self.fence.why_not(self.write_seconds):
            self._told[uid] = found.queue
            logger.warning("queue lost claim=%s queue=%s", found.claim, found.queue)
            self.steps.record(apiserver_events.queue_lost(found))

    async def _keep(self) -> NoReturn:
        """One of those that do what there is to do, claim by claim; a slow one delays no other."""
        while True:
            await self._to_do.wait()
            if (uid := self.agenda.next()) is None:
                self._to_do.clear()
            elif self.fence.why_not(self.write_seconds):
                await asyncio.sleep(FENCED_SECONDS)
            else:
                await self._do_alone(uid)

    async def _do_alone(self, uid: ClaimUid) -> None:
        """Do what the claim needs while nobody else does; after a failure wait for a while."""
        self.agenda.begin(uid)
        try:
            with naming(claimUID=uid):
                is_over = await self._do(uid)
            self._failures = 0 if is_over else self._failures + 1
            await asyncio.sleep(_BACKOFF.delay(self._failures, random.random))
        finally:
            if self.agenda.end(uid):
                self._to_do.set()

    async def _do(self, uid: ClaimUid) -> bool:
        """Do one step; False where it stays pending, behind all others, to be tried again."""
        if self.is_busy(uid):
            self._set_alarm(uid, self.monotonic() + BUSY_SECONDS)
            return True
        step = self._step(uid)
        if step is None:
            return True
        try:
            await self._carry_out(step)
        except (ConflictError, NotFoundError) as error:
            # Whoever wrote it is heard of, and then it is looked at again.
            logger.debug("claim in another version uid=%s: %s", uid, error)
        except HeldBackError as error:
            self._hold_back(step, str(error))
        except PermanentError as error:
            logger.warning("claim not kept uid=%s step=%s: %s", uid, _name(step), error)
        except (ApiError, FencedError) as error:
            logger.warning("claim not kept yet uid=%s step=%s: %s", uid, _name(step), error)
            self.agenda.put(uid)
            return False
        else:
            self._done(uid, step)
        return True

    async def _carry_out(self, step: Step) -> None:
        try:
            await self.steps.carry_out(step)
        except (ApiError, FencedError, HeldBackError):
            raise
        except Exception as error:
            logger.exception("claim not kept step=%s", step)
            raise PermanentError(str(error)) from error

    def _done(self, uid: ClaimUid, step: Step) -> None:
        if isinstance(step, EvictForeign):
            self._rests.succeeded(uid)
            self._rests.rest(uid, self.monotonic(), EVICTED_SECONDS)
        self.changed([uid])

    def _hold_back(self, step: Step, why: str) -> None:
        if not isinstance(step, EvictForeign):
            return
        self._rests.again(step.uid, self.monotonic(), held_back_seconds)
        logger.warning("eviction held back claim=%s/%s: %s", step.namespace, step.name, why)
        self.steps.record(apiserver_events.held_back(step, why))
        self.changed([step.uid])


def _name(step: Step) -> str:
    return type(step).__name__
