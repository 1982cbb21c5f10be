"""The DeviceTaintRules of the cluster, watched where it serves them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from driver.shapes.instance_taints import TaintRuleIndex
from kube.calls.api import ApiClient, ApiError, ForbiddenError
from kube.kinds import TAINT_RULES
from kube.resources import Resource
from kube.shapes.reading import read_as
from kube.shapes.taint_rules import DeviceTaintRule
from kube.stores.api import Change, Modified, Store, WatchSettings

logger = logging.getLogger(__name__)

PROBE_SECONDS = 600.0
"""How often a cluster that does not serve them is asked again; an upgrade may bring them."""

RETRY_SECONDS = 2.0
"""How soon the API server is asked again after it did not answer."""

LOST_SECONDS = 60.0
"""How often it is checked that the watched version is served; an upgrade may end it."""


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
        self._store: Store[DeviceTaintRule] | None = None
        self._rules: TaintRuleIndex | None = None

    @property
    def rules(self) -> TaintRuleIndex:
        """The rules whose taint keeps users away."""
        if self._rules is None:
            # Made when they are read: a list of thousands of rules brings one change each.
            self._rules = TaintRuleIndex(rule for rule in self._store or () if rule.repels)
        return self._rules

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        absences = 0
        while True:
            if (resource := await self._served()) is not None:
                absences = 0
                await self._follow(resource)
                continue
            absences += 1
            # One answer may be of the last of several API servers that is not upgraded.
            if absences > 1 and self._store is not None:
                self._take(None)
            self.settled.set()
            # Not all nodes at one moment.
            await asyncio.sleep(PROBE_SECONDS * random.uniform(0.5, 1.5))

    async def _follow(self, resource: Resource) -> None:
        """Watch until this version is not served; earlier rules hold until its rules are known."""
        store = Store(
            self._client,
            resource.select(),
            lambda obj: read_as(DeviceTaintRule, obj),
            settings=WatchSettings(shape=DeviceTaintRule),
        )
        async with asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(part) for part in (store.run(), self._take_known(store))]
            await self._until_lost(store, resource)
            for part in parts:
                part.cancel()

    async def _take_known(self, store: Store[DeviceTaintRule]) -> None:
        await store.synced.wait()
        self._take(store)
        store.subscribe(partial(self._follow_change, store))
        self.settled.set()

    def _follow_change(
        self, store: Store[DeviceTaintRule], change: Change[DeviceTaintRule]
    ) -> None:
        # Kubernetes writes into the status of a rule while it evicts.
        if not (isinstance(change, Modified) and change.old.spec == change.new.spec):
            self._take(store)

    def _take(self, store: Store[DeviceTaintRule] | None) -> None:
        self._store, self._rules = store, None
        self._on_changed()

    async def _until_lost(self, store: Store[DeviceTaintRule], resource: Resource) -> None:
        while True:
            await asyncio.sleep(LOST_SECONDS)
            if store.stats.failures_in_a_row and not await self._still_serves(resource):
                logger.warning("DeviceTaintRules of %s are gone", resource.api_version)
                return

    async def _still_serves(self, resource: Resource) -> bool:
        """Whether the version is served; while the API server does not answer, it is."""
        try:
            return await self._client.serves(resource)
        except ApiError:
            return True

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
