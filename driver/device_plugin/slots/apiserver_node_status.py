"""Writes the allocatable resources of this node's Node before the kubelet does.

So a slot that another node took causes no series of failed pods, and a released slot is used at
once. If a write fails, the kubelet writes the same numbers later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from driver.api import NodeName
from driver.device_plugin.slots.allocatable import Allocatable, status_patch
from driver.plumbing.apiserver import field_manager
from kube.calls.api import ApiClient, ApiError, WriteOptions
from kube.kinds import NODES

logger = logging.getLogger(__name__)

COALESCE_SECONDS = 0.01
"""How long numbers are gathered into one patch: the lists of one decision come one by one."""

PACE_SECONDS = 1.0
"""Shortest time between two patches: every watcher of Nodes gets the whole Node each time."""

WRITE_SECONDS = 2.0

URGENT_SECONDS = 1.0
"""How long a refused Allocate waits for the patch, so that the next pod is not refused, too."""


class NodeStatus:
    """Writes the numbers that the kubelet was sent (`kubelet.plugin_service.FollowsLists`)."""

    def __init__(self, client: ApiClient, node: NodeName) -> None:
        self._client = client
        self._node = node
        self._allocatable = Allocatable()
        self._asked = asyncio.Event()
        self._written = asyncio.Event()
        self._urgent = asyncio.Event()
        self._waiting = 0
        self._failed = False

    def opened(self, resource: str) -> None:
        self._allocatable.open(resource)

    def sent(self, resource: str, healthy: int) -> None:
        self._allocatable.note_sent(resource, healthy)
        if self._allocatable.is_due(resource):  # Most lists repeat the number.
            self._asked.set()

    def closed(self, resource: str) -> None:
        self._allocatable.close(resource)
        self._asked.set()

    async def says(self, resource: str, healthy: int) -> None:
        """Write the number again, and wait for the write for `URGENT_SECONDS` at most."""
        self._allocatable.invalidate(resource)
        self._waiting += 1
        self._asked.set()
        self._urgent.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(URGENT_SECONDS):
                    while self._allocatable.is_pending(resource, healthy):
                        await self._written.wait()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._urgent.clear()

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            await self._asked.wait()
            await asyncio.sleep(COALESCE_SECONDS)
            self._asked.clear()
            if await self._write():
                with suppress(TimeoutError):
                    async with asyncio.timeout(PACE_SECONDS):
                        await self._urgent.wait()

    async def _write(self) -> bool:
        due = self._allocatable.due()
        if due:
            await self._patch(due)
            self._allocatable.note_written(due)
            if self._allocatable.due():  # A number that changed back meanwhile looked written.
                self._asked.set()
            written, self._written = self._written, asyncio.Event()
            written.set()
        return bool(due)

    async def _patch(self, due: Mapping[str, int]) -> None:
        options = WriteOptions(
            field_manager=field_manager(self._node), timeout_seconds=WRITE_SECONDS
        )
        try:
            path = NODES.at(self._node, "", "status")
            await self._client.merge_patch(path, status_patch(due), options=options)
        except ApiError as error:
            level = logging.DEBUG if self._failed else logging.WARNING
            logger.log(level, "the kubelet will write the Node's allocatable: %s", error)
            self._failed = True
        else:
            self._failed = False
