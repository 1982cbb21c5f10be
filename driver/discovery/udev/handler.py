"""The udev handler: the devices of this node that rules select, as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from driver.devices import Device
from driver.discovery.contract import NO_PROPERTIES, Properties
from driver.discovery.udev.details import UdevDetails
from driver.discovery.udev.doubts import withheld_sentence
from driver.discovery.udev.handler_subscriptions import Subscription
from driver.discovery.udev.netlink_watch import UdevSettings, Watch
from driver.discovery.udev.passthrough import passthrough_of


class UdevHandler:
    """The udev handler; one watch serves all calls of `discover`, as long as one runs."""

    name = "udev"

    def __init__(self, settings: UdevSettings | None = None) -> None:
        self._settings = settings or UdevSettings()
        self._subscriptions: set[Subscription] = set()
        self.watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """Why devices cannot be discovered now, or are withheld; the handler keeps trying."""
        if self.watch is None:
            return None
        withheld = (path for subscription in self._subscriptions for path in subscription.withheld)
        return self.watch.problem or withheld_sentence(withheld)

    def is_shared(self, details: UdevDetails) -> bool:
        """False: a udev device belongs to this node."""
        return False

    async def discover(
        self, details: UdevDetails, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all devices that the rules select, sorted by id, and again whenever they change.

        The caller must close it (`contextlib.aclosing`): the watch ends with its last reader.
        """
        subscription = Subscription(details, passthrough_of(properties))
        self._join(subscription)
        try:
            while True:
                yield await subscription.next_list()
        finally:
            await self._leave(subscription)

    def _join(self, subscription: Subscription) -> None:
        self._subscriptions.add(subscription)
        if self.watch is not None and self._task is not None and not self._task.done():
            self.watch.scan((subscription,))
            return
        self.watch = Watch(self._settings, self._subscriptions)
        self._task = asyncio.create_task(self.watch.run(), name="udev watch")
        self._task.add_done_callback(self._fail_readers)

    async def _leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        subscription.close()
        task = self._task
        if self._subscriptions or task is None:
            return
        self.watch = self._task = None
        task.cancel()
        await asyncio.wait({task})

    def _fail_readers(self, task: asyncio.Task[None]) -> None:
        """Pass on the error of a watch that failed, so that no reader waits for it."""
        if not task.cancelled() and (error := task.exception()):
            for subscription in self._subscriptions:
                subscription.fail(error)
