"""Workers that take keys from a work queue and reconcile them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Generic, NoReturn, TypeVar

from kube.backoff import Backoff
from kube.calls.errors import ApiError, said
from kube.reconciling.prometheus_queues import DEPTH, RESULTS, WORK_SECONDS
from kube.reconciling.results import After, Done, Failed, Result
from kube.reconciling.work_queue import WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

BACKOFF = Backoff(first_seconds=0.2, cap_seconds=30.0)
FENCED_SECONDS = 1.0
"""How often the fence is asked while it forbids writes."""


def never_fenced() -> str:
    """The fence of a process without a Lease: writes are always allowed."""
    return ""


class Reconciler(Generic[K]):
    """Calls `reconcile` for each key that was added, at most one call for a key at a time.

    A call reads the stores, decides, writes, and returns a `Result`. It may be killed at any point:
    the next process calls it for the same key again, with the state of that time.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result]],
        *,
        workers: int = 1,
        why_not: Callable[[], str] = never_fenced,
        backoff: Backoff = BACKOFF,
    ) -> None:
        """Create with an empty queue.

        Args:
            name: The controller's name, for logs and metrics.
            reconcile: Reconciles one key; an exception counts as `Failed`.
            workers: The number of keys that are reconciled concurrently.
            why_not: The fence: why no write may begin now, as a sentence; "" if it may. It is asked
                before each call. `reconcile` must ask it before each write, too.
            backoff: The delay of a key after failures in a row.
        """
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._why_not = why_not
        self._queue: WorkQueue[K] = WorkQueue(backoff, random.random)
        self._changed = asyncio.Event()
        self._waits_until: float | None = None
        self._backoff = backoff
        self._paused_until = float("-inf")
        self._pauses_in_a_row = 0
        self._processing = 0
        self._depth = DEPTH.labels(name)
        # Looking up labels takes as long as a call without work.
        self._results = MappingProxyType(
            {kind: RESULTS.labels(name, kind.__name__.lower()) for kind in (Done, After, Failed)}
        )
        self._seconds = WORK_SECONDS.labels(name)

    def rotate(self, group: Callable[[K], Hashable]) -> None:
        """Let groups of keys alternate; to be called before the first key is added."""
        self._queue = WorkQueue(self._backoff, random.random, group)

    def __len__(self) -> int:
        """The number of keys that are ready."""
        return len(self._queue)

    def add(self, key: K) -> None:
        """Reconcile the key soon; may be called from anywhere in the event loop."""
        self._queue.add(key)
        self._note()

    def add_all(self, keys: Iterable[K]) -> None:
        """Reconcile all of these keys, as in a resync."""
        for key in keys:
            self._queue.add(key)
        self._note()

    def add_after(self, key: K, seconds: float) -> None:
        """Reconcile the key after this time, or sooner if it is added."""
        self._queue.add_after(key, _now() + seconds)
        self._note()

    async def run(self) -> NoReturn:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                key = await self._next()
                task = tasks.create_task(self._work(key), name=f"{self.name} {key}")
                task.add_done_callback(partial(self._end, key))
        raise AssertionError("keys never end")

    async def _work(self, key: K) -> None:
        result = await self._result(key)
        self._take(key, result)
        if pause := 0.0 if isinstance(result, Failed) else result.pause:
            await asyncio.sleep(pause)

    def _end(self, key: K, _: asyncio.Task[None]) -> None:
        """Mark the key as done, also if its task was cancelled before it began."""
        self._processing -= 1
        self._queue.done(key)
        self._note()

    async def _next(self) -> K:
        """The next key, once a worker is free and the fence allows writes."""
        while True:
            if why := self._why_not():
                RESULTS.labels(self.name, "fenced").inc()
                logger.debug("%s waits: %s", self.name, why)
                await asyncio.sleep(FENCED_SECONDS)
                continue
            if (seconds := self._paused_until - _now()) > 0:
                await asyncio.sleep(seconds)
                continue
            if self._is_free() and (key := self._queue.get(_now())) is not None:
                self._processing += 1
                self._depth.set(len(self._queue))
                return key
            self._changed.clear()
            self._waits_until = self._queue.next_moment() if self._is_free() else None
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._waits_until):
                    await self._changed.wait()

    async def _result(self, key: K) -> Result:
        began = _now()
        try:
            return await self._reconcile(key)
        except ApiError as error:
            return Failed(error)
        except Exception as error:  # A malformed object must not end the process.
            if why := self._why_not():
                logger.info("%s stopped by the fence key=%s: %s", self.name, key, why)
                return After(FENCED_SECONDS)
            logger.exception("%s failed key=%s", self.name, key)
            return Failed(error)
        finally:
            self._seconds.observe(_now() - began)

    def _take(self, key: K, result: Result) -> None:
        self._results[type(result)].inc()
        match result:
            case Done():
                self._pauses_in_a_row = 0
                self._queue.forget(key)
            case After(seconds=seconds):
                self._pauses_in_a_row = 0
                self._queue.forget(key)
                self._queue.add_after(key, _now() + seconds)
            case Failed(error, pauses_all):
                asked = error.retry_after_seconds if isinstance(error, ApiError) else 0.0
                seconds = self._queue.add_rate_limited(key, _now(), asked)
                if pauses_all:
                    self._pause(asked)
                attempt = self._queue.requeues(key)
                logger.warning(
                    "%s failed key=%s attempt=%d again_in=%.1f error=%s",
                    *(self.name, key, attempt, seconds, said(error)),
                )

    def _pause(self, at_least: float) -> None:
        """Pause all keys; calls that fail in the same pause do not make the next one longer."""
        now = _now()
        if now >= self._paused_until:
            self._pauses_in_a_row += 1
        seconds = max(at_least, self._backoff.delay(self._pauses_in_a_row, random.random))
        self._paused_until = max(self._paused_until, now + seconds)

    def _note(self) -> None:
        """Wake `_next` if a key is ready, or the next one is due at another time.

        A key that is added for later, thousands of times a second, does not wake it.
        """
        self._depth.set(len(self._queue))
        is_sooner = self._queue.next_moment() != self._waits_until
        if self._is_free() and (len(self._queue) or is_sooner):
            self._changed.set()

    def _is_free(self) -> bool:
        return self._processing < self._workers


def _now() -> float:
    return asyncio.get_running_loop().time()
