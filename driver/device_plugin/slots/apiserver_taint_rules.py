"""The DeviceTaintRules of the cluster, watched where it serves them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NoReturn

from kube.calls.api import ApiClient, ApiError, ForbiddenError
from kube.kinds import TAINT_RULES
from kube.resources import Resource
from kube.shapes.reading import read_as
from kube.shapes.taint_rules import DeviceTaintRule
from kube.stores.api import Store, WatchSettings

logger = logging.getLogger(__name__)

PROBE_SECONDS = 600.0
"""How often a cluster that does not serve them is asked again; an upgrade may bring them."""

RETRY_SECONDS = 2.0
"""How soon the API server is asked again after it did not answer."""


class TaintRules:
    """The rules with an effect; none where the cluster does not serve the kind.

    Attributes:
        settled: Set once they are known, or are known not to be served.
    """

    def __init__(self, client: ApiClient, on_changed: Callable[[], object]) -> None:
        """Create; `on_changed` is called after each change."""
        self.settled = asyncio.Event()
        self._client = client
        self._on_changed = on_changed
        self._rules: tuple[DeviceTaintRule, ...] = ()

    @property
    def rules(self) -> tuple[DeviceTaintRule, ...]:
        """The rules whose taint keeps users away, sorted by name."""
        return self._rules

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        while (resource := await self._served()) is None:
            self.settled.set()
            # Not all nodes at one moment.
            await asyncio.sleep(PROBE_SECONDS * random.uniform(0.5, 1.5))
        store = Store(
            self._client,
            resource.select(),
            lambda obj: read_as(DeviceTaintRule, obj),
            settings=WatchSettings(shape=DeviceTaintRule),
        )
        store.subscribe(lambda _: self._take(store))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.run())
            await store.synced.wait()
            self.settled.set()
        raise AssertionError("a store runs until it is cancelled")

    def _take(self, store: Store[DeviceTaintRule]) -> None:
        repelling = (rule for rule in store if rule.repels)
        self._rules = tuple(sorted(repelling, key=lambda rule: rule.name))
        self._on_changed()

    async def _served(self) -> Resource | None:
        """The version of the kind to watch; None if no version is served, or the right is missing.

        Asks until the API server answers.
        """
        while True:
            try:
                return await self._newest()
            except ForbiddenError as error:
                logger.warning("DeviceTaintRules are not respected: %s", error)
                return None
            except ApiError as error:
                logger.warning("discovery failed for DeviceTaintRules: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _newest(self) -> Resource | None:
        for resource in TAINT_RULES:
            if await self._client.serves(resource):
                return resource
        return None
