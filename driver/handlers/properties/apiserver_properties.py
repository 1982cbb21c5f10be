"""Reads the Secrets and ConfigMaps that Configurations name, and no others.

Each object is watched by its name, which is all that a Role with `resourceNames` allows, as long as
a Configuration names it. Only the named entries are kept. A value that was read stays while the API
server is unavailable, or the permission is missing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping

from driver.api import Configuration, ConfigurationName
from driver.discovery.contract import Properties
from driver.handlers.properties.discovery_properties import (
    KeptObject,
    Reading,
    entries_of,
    forbidden,
    kept_objects,
    problems,
    resolve,
)
from kube.backoff import Backoff
from kube.calls.api import ApiClient, ApiError, ForbiddenError, UnavailableError
from kube.kinds import CONFIG_MAPS, SECRETS
from kube.resources import Selection
from kube.stores.api import Store, WatchSettings

logger = logging.getLogger(__name__)

MOST_OBJECTS = 50
"""Objects that are watched at most: each takes one of the client's 100 connections."""


_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=10.0)
"""Short: a user who applies a Role waits for its effect."""

_FAILURES_TO_REPORT = 3
"""Failures in a row; a server that starts may refuse what it allows a moment later."""


class NodeProperties:
    """Reads the properties of the followed Configurations."""

    def __init__(self, client: ApiClient, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self._watches: dict[KeptObject, _Watch] = {}
        self._unwatched: frozenset[KeptObject] = frozenset()
        self._listeners: list[Callable[[], None]] = []
        self._logged: dict[ConfigurationName, tuple[str, ...]] = {}

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a property or a problem with one may have changed."""
        self._listeners.append(listener)

    def follow(self, configurations: Collection[Configuration]) -> None:
        """Watch the objects that these name, and drop all others."""
        wanted = kept_objects(configurations)
        for kept, watch in list(self._watches.items()):
            if wanted.get(kept) != watch.keys:
                self._watches.pop(kept).end()
        waiting = sorted(wanted.keys() - self._watches.keys())
        room = MOST_OBJECTS - len(self._watches)
        for kept in waiting[:room]:
            watch = _Watch(self._client, kept, wanted[kept], self._notify)
            self._watches[kept] = watch
            watch.task = self._tasks.create_task(watch.run(), name=f"watch {kept}")
        self._unwatched = frozenset(waiting[room:])
        self._log(configurations)

    def read(self, configuration: Configuration) -> Properties | None:
        """See `handler_sources.ReadProperties`."""
        return resolve(configuration, self._readings(configuration))

    def problems(self, configuration: Configuration) -> tuple[str, ...]:
        """Sentences: why its properties cannot be read."""
        return problems(configuration, self._readings(configuration))

    def _readings(self, configuration: Configuration) -> Mapping[KeptObject, Reading]:
        return {kept: self._reading(kept) for kept in kept_objects([configuration])}

    def _reading(self, kept: KeptObject) -> Reading:
        if watch := self._watches.get(kept):
            return watch.reading
        if kept in self._unwatched:
            return Reading(
                trouble=f"{kept} is not read: a node reads {MOST_OBJECTS} objects at most."
            )
        return Reading()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()

    def _log(self, configurations: Iterable[Configuration]) -> None:
        before, self._logged = self._logged, {}
        for configuration in configurations:
            self._logged[configuration.name] = found = self.problems(configuration)
            for sentence in set(found).difference(before.get(configuration.name, ())):
                logger.warning(
                    "discovery property not read configuration=%s: %s", configuration.name, sentence
                )


class _Watch:
    """Follows one object.

    Attributes:
        keys: The keys of the entries that are kept.
        task: The task that runs it.
    """

    def __init__(
        self,
        client: ApiClient,
        kept: KeptObject,
        keys: frozenset[str],
        on_change: Callable[[], None],
    ) -> None:
        self.keys = keys
        self.task: asyncio.Task[None] | None = None
        self._client = client
        self._kept = kept
        self._on_change = on_change
        self._trouble: str | None = None
        self._store = Store(
            client,
            _selection(kept),
            lambda body: entries_of(kept, body, keys),
            settings=WatchSettings(backoff=_BACKOFF),
        )

    @property
    def reading(self) -> Reading:
        trouble = self._trouble or self._lost_permission()
        if not self._store.synced.is_set():
            return Reading(trouble=trouble)
        entries = self._store.get(self._kept.name, self._kept.namespace)
        return Reading(is_read=True, entries=entries, trouble=trouble)

    def end(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Follow the object until cancelled."""
        await self._until_allowed()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._store.run())
            await self._store.synced.wait()
            self._store.subscribe(lambda _: self._on_change())
            self._on_change()

    async def _until_allowed(self) -> None:
        """Wait until it may be read; a store would retry without reporting why it fails."""
        failures = 0
        while True:
            try:
                await self._client.current_version(_selection(self._kept))
            except ApiError as error:
                failures += 1
                self._note(error)
                delay = _BACKOFF.delay(failures, random.random)
                await asyncio.sleep(error.retry_after_seconds + delay)
            else:
                self._trouble = None
                return

    def _note(self, error: ApiError) -> None:
        before = self._trouble
        if isinstance(error, ForbiddenError):
            self._trouble = forbidden(self._kept)
        elif not isinstance(error, UnavailableError):
            self._trouble = f"{self._kept} cannot be read: {error}."
        if self._trouble != before:
            self._on_change()

    def _lost_permission(self) -> str | None:
        stats = self._store.stats
        lasts = stats.failures_in_a_row >= _FAILURES_TO_REPORT
        return forbidden(self._kept) if stats.forbidden and lasts else None


def _selection(kept: KeptObject) -> Selection:
    resource = SECRETS if kept.kind == "Secret" else CONFIG_MAPS
    return resource.select(kept.namespace, field_selector=f"metadata.name={kept.name}")
