"""The recorder of Events: writes them to the API server in the background, as best effort."""

import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NoReturn
from uuid import uuid4

from kube.backoff import Backoff
from kube.calls.apiserver import ApiClient
from kube.calls.errors import AlreadyExistsError, NotFoundError, RetryableError, said
from kube.calls.requests import WriteOptions
from kube.events.event_series import CreateEvent, Event, EventSeries, PatchSeries, Write
from kube.kinds import EVENTS
from kube.reconciling.reconcilers import Reconciler
from kube.reconciling.results import After, Done, Failed, Result
from kube.resources import ObjectPath
from kube.wall_clock import wall_clock

logger = logging.getLogger(__name__)

ATTEMPTS = 3
MOST_WAITING = 1000
SERIES_AT_ONCE = 100
"""How many repetitions are written before new Events are looked at again."""

SERIES_SECONDS = 1.0
"""How often due repetitions are written."""

BACKOFF = Backoff(first_seconds=0.5, cap_seconds=5.0)
WRITE = WriteOptions(timeout_seconds=5.0)

_SERIES: Final = "series"
"""The key for the repetitions of all series; the other keys are paths of Events."""


@dataclass(slots=True)
class _Waiting:
    write: Write
    attempts: int = 0


class EventRecorder:
    """Takes Events without waiting, and writes them one after the other while `run` runs.

    Best effort: no caller waits for an Event or fails with it. `dropped` counts Events that were
    lost to a full queue, or that the API server did not accept.
    """

    def __init__(self, client: ApiClient, controller: str, instance: str) -> None:
        """`controller` is a qualified name such as `moorage.dev/driver`; `instance` its pod."""
        self.dropped = 0
        self._client = client
        self._series = EventSeries(controller, instance)
        self._waiting: dict[ObjectPath, _Waiting] = {}
        self._queue: Reconciler[ObjectPath | str] = Reconciler(
            "events", self._reconcile, backoff=BACKOFF
        )

    def record(self, event: Event) -> None:
        """Queue an event; returns at once, whatever the state of the API server is."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        now, unique = wall_clock(), uuid4().hex[:16]
        if create := self._series.record(event, now=now, unique=unique):
            self._put([create])

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        self._queue.add(_SERIES)
        await self._queue.run()

    def _put(self, writes: Iterable[Write]) -> None:
        for write in writes:
            path = write.path
            self._waiting[path] = _Waiting(write)
            self._queue.add(path)

    async def _reconcile(self, key: ObjectPath | str) -> Result:
        if isinstance(key, str):
            # A series may be that of an Event which is still to be created.
            if not self._waiting:
                self._put(islice(self._series.due(now=wall_clock()), SERIES_AT_ONCE))
            return After(SERIES_SECONDS)
        waiting = self._waiting[key]
        waiting.attempts += 1
        try:
            await self._send(waiting.write)
        except RetryableError as error:
            if waiting.attempts < ATTEMPTS:
                return Failed(error, pauses_all=True)
            return self._give_up(key, waiting.write, error)
        except Exception as error:  # noqa: BLE001  An Event that cannot be written delays no other.
            return self._give_up(key, waiting.write, error)
        del self._waiting[key]
        return Done()

    def _give_up(self, key: ObjectPath, write: Write, error: Exception) -> Result:
        del self._waiting[key]
        if isinstance(error, AlreadyExistsError):
            return Done()  # An earlier attempt was carried out although its answer was lost.
        if isinstance(write, PatchSeries) and isinstance(error, NotFoundError):
            # The Event's time to live has run out, or its namespace is gone.
            self._series.forget(write.path)
            return Done()
        logger.warning("event not written: %s", said(error))
        self.dropped += 1
        if isinstance(error, RetryableError):
            # The server may be unreachable: the next Event waits as after another failure.
            seconds = BACKOFF.delay(ATTEMPTS, random.random)
            return Done(pause=max(seconds, error.retry_after_seconds))
        return Done()

    async def _send(self, write: Write) -> None:
        match write:
            case CreateEvent(body=body):
                await self._client.create(EVENTS, body, options=WRITE)
            case PatchSeries(path, patch):
                await self._client.merge_patch(path, patch, options=WRITE)
