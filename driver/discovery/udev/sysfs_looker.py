"""The worker thread of the udev handler: reads devices and shows them to searches."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence

from driver.discovery.udev.devices import Search
from driver.discovery.udev.handler_subscriptions import Subscription
from driver.discovery.udev.sysfs import Libudev, SysfsDevice, listed_devices

logger = logging.getLogger(__name__)


class Looker:
    """Looks at devices for subscriptions; used by one thread at a time.

    Args:
        settles: Whether a udevd runs, which adds to what the kernel says of a device.
    """

    def __init__(self, *, settles: bool) -> None:
        self._libudev = Libudev()
        self._settles = settles
        self._unsettled: set[str] = set()
        self._refused: set[str] = set()

    def paths(self, subscriptions: Sequence[Subscription]) -> deque[str]:
        """Paths where a search may find something, and where it found something before."""
        searches = [subscription.search for subscription in subscriptions]
        paths = dict.fromkeys(path for search in searches for path in search.paths)
        for device in listed_devices():
            if any(search.may_select(device.subsystem, device.sys_name) for search in searches):
                paths[device.path] = None
        return deque(paths)

    def look(
        self, paths: Iterable[str], subscriptions: Sequence[Subscription], *, told: bool
    ) -> set[Subscription]:
        """Show devices to searches; those for which that changed something.

        Args:
            paths: Where to look.
            subscriptions: For whom.
            told: Whether an event said so; otherwise udevd may not be done with a new device.
        """
        changed: set[Subscription] = set()
        for path in paths:
            device = self._libudev.device(path)
            if device is None:
                self._refused.discard(path)
            early = self._is_early(path, device, told=told)
            for subscription in subscriptions:
                if early and subscription.is_heard and path not in subscription.search:
                    continue
                if self._show(path, device, subscription.search):
                    changed.add(subscription)
        return changed

    def _is_early(self, path: str, device: SysfsDevice | None, *, told: bool) -> bool:
        """Whether udevd may still be at work on a device, so that its rules may not fit yet.

        At the second sight it is believed to be done: it knows nothing of devices that were there
        when it started, unless it was triggered.
        """
        if not self._settles or told or device is None or device.is_settled:
            self._unsettled.discard(path)
            return False
        seen = path in self._unsettled
        self._unsettled.add(path)
        return not seen

    def _show(self, path: str, device: SysfsDevice | None, search: Search) -> bool:
        """One device that cannot be read, or whose name is no text, must not stop the others."""
        try:
            return search.look(path, device)
        except (OSError, ValueError, LookupError) as error:
            if path not in self._refused:
                self._refused.add(path)
                logger.warning("device cannot be offered: path=%s error=%s", ascii(path), error)
            return False
