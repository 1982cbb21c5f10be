"""Watches Akri's own controller: Moorage makes nothing beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from driver.brokers.akri import AKRIS_CONTROLLERS, controller
from kube.calls.api import ApiClient
from kube.stores.api import Store


class AkriController:
    """The pods of Akri's controller, in all namespaces.

    Attributes:
        synced: Set once it is known whether one runs.
    """

    def __init__(self, client: ApiClient, *, is_watched: bool) -> None:
        """Create; `is_watched` is False where Moorage makes nothing anyway, and may not look."""
        self._pods: Store[str] = Store(client, AKRIS_CONTROLLERS, controller)
        self._is_watched = is_watched
        self.synced = self._pods.synced if is_watched else asyncio.Event()
        if not is_watched:
            self.synced.set()

    async def run(self) -> None:
        """Follow the pods until cancelled; failures are logged and retried without a limit."""
        if self._is_watched:
            await self._pods.run()

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call back when a pod of the controller comes, ends or is deleted."""
        self._pods.subscribe(lambda _: changed())

    @property
    def runs(self) -> bool:
        """Whether a pod of the controller runs, or is about to."""
        return len(self._pods) > 0
