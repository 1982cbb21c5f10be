"""Events: told to the API server in the background, as far as that is possible."""

import asyncio
import logging
import random
from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import NoReturn
from uuid import uuid4

from kube.backoff import Backoff
from kube.calls.apiserver import ApiClient
from kube.calls.errors import AlreadyExistsError, ApiError, NotFoundError, RetryableError
from kube.calls.requests import WriteOptions
from kube.events.event_series import CreateEvent, Event, EventSeries, PatchSeries, Write
from kube.kinds import EVENTS
from kube.wall_clock import wall_clock

log = logging.getLogger(__name__)

ATTEMPTS = 3
MOST_WAITING = 1000
TICK_SECONDS = 1.0
BACKOFF = Backoff(first_seconds=0.5, cap_seconds=5.0)
WRITE = WriteOptions(timeout_seconds=5.0)


class EventRecorder:
    """Takes events from everywhere at once, and writes them one by one while `run` runs.

    Best effort: events are for people, so nothing waits for them and nothing fails with them.
    `dropped` counts those that were lost to a full queue or to a server that did not take them.
    """

    def __init__(self, client: ApiClient, controller: str, instance: str) -> None:
        """`controller` is a qualified name such as `moorage.dev/driver`; `instance` the pod's."""
        self.dropped = 0
        self._client = client
        self._series = EventSeries(controller, instance)
        self._queue: deque[tuple[Event, datetime]] = deque()
        self._more = asyncio.Event()

    def record(self, event: Event) -> None:
        """Return at once, whatever the state of the API server is."""
        if len(self._queue) >= MOST_WAITING:
            self.dropped += 1
            return
        self._queue.append((event, wall_clock()))
        self._more.set()

    async def run(self) -> NoReturn:
        while True:
            while self._queue:
                event, happened_at = self._queue.popleft()
                unique = uuid4().hex[:16]
                if create := self._series.record(event, now=happened_at, unique=unique):
                    await self._write(create)
            for patch in self._series.due(now=wall_clock()):
                await self._write(patch)
            await self._wait()

    async def _wait(self) -> None:
        self._more.clear()
        with suppress(TimeoutError):  # Repetitions may have become due.
            async with asyncio.timeout(TICK_SECONDS):
                await self._more.wait()

    async def _write(self, write: Write) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._send(write)
            except AlreadyExistsError:
                return  # An earlier attempt was carried out although its answer was lost.
            except NotFoundError:
                # The Event's time to live has run out, or its namespace is gone.
                if isinstance(write, CreateEvent):
                    break
                self._series.forget(write.path)
                return
            except RetryableError as error:
                log.info("event not written attempt=%d error=%s", attempt, error)
                await asyncio.sleep(BACKOFF.delay(attempt, random.random))
            except ApiError as error:
                log.warning("event refused error=%s", error)
                break
            else:
                return
        self.dropped += 1

    async def _send(self, write: Write) -> None:
        match write:
            case CreateEvent(body):
                await self._client.create(EVENTS, body, options=WRITE)
            case PatchSeries(path, patch):
                await self._client.merge_patch(path, patch, options=WRITE)
