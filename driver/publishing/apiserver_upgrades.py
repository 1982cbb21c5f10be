"""An API server that is upgraded while this process runs: its features are probed again.

keep_warm ──version──► Upgrades ──a new one──► probe ──differs──► FeaturesChangedError ──► exit

Stores, pools and classes are made for the features that were found at the start, so the process
ends when they change. The next one starts with those of the upgraded server: as after any restart,
devices in use stay, and no device is offered twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, NoReturn, TypeVar

from driver.plumbing.apiserver import until_done
from driver.server_versions import FeaturesChangedError, ServerVersions
from kube.calls.api import ApiClient

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Upgrades(Generic[T]):
    """Probes the API server, and again when its version has changed."""

    def __init__(self, client: ApiClient, probe: Callable[[], Awaitable[T]]) -> None:
        """Create; `probe` finds out what the API server keeps, and retries until it answers."""
        self._client = client
        self._probe = probe
        self._versions: ServerVersions | None = None
        self._upgraded = asyncio.Event()

    async def found(self) -> T:
        """Probe for the first time. Call once, before `watch`."""
        # The version is read before and after: an upgrade during the probe is noticed, and so are
        # several API servers of which one told its version, and another was probed.
        self._versions = ServerVersions(await self._version())
        found = await self._probe()
        self.read(await self._version())
        return found

    async def _version(self) -> str:
        server = await until_done(self._client.server, name="asking the API server for its version")
        return server.release

    def read(self, version: str) -> None:
        """Take a reading of the version, such as those of `keep_warm`."""
        if self._versions is not None and self._versions.read(version):
            self._upgraded.set()

    async def watch(self, found: T) -> NoReturn:
        """Probe after each upgrade, until cancelled.

        Raises:
            FeaturesChangedError: The probe finds something else than before.
        """
        while True:
            await self._upgraded.wait()
            self._upgraded.clear()
            assert self._versions is not None, "it was probed before it is watched"
            version = self._versions.probed
            if (now := await self._probe()) != found:
                raise FeaturesChangedError(
                    f"the API server is upgraded to {version} and has other features: {now}, not"
                    f" {found}. This process ends; the next one starts with these features"
                )
            logger.info("the API server is upgraded, its features stay version=%s", version)
