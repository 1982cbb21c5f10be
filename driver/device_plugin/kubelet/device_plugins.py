"""Device plugins of this node: a gRPC server and a registration with the kubelet for each resource.

    slots ──offer, resend──► DevicePlugins ──► Endpoint (one for each resource) ──► kubelet

The sockets are in a folder of their own below the kubelet's. At its start the kubelet removes all
sockets directly in its folder, and the endpoint of a plugin is a path relative to that folder. So
after a restart of the kubelet the plugins only need to register again.

One server cannot serve two resources, since no message names the resource. A server takes some
60 KiB with a stream.

While an old and a new process of the driver overlap, the new sockets take the paths of the old
ones. The streams of the old process go on until it ends. The new process keeps a connection to it,
to detect its end.
"""

from __future__ import annotations

import asyncio
import logging
import resource as limits
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import grpc

from driver.device_plugin.kubelet.endpoints import Endpoint
from driver.device_plugin.kubelet.plugin_service import AnswersKubelet, FollowsLists
from driver.device_plugin.kubelet.registrations import KubeletSocket, Pace
from driver.device_plugin.slots.allocation import Plugin
from driver.device_plugin.slots.lists import PluginLists
from driver.plumbing.kubelet_channels import unix_channel
from driver.plumbing.kubelet_sockets import is_dead

logger = logging.getLogger(__name__)

KUBELET_SOCKET = "kubelet.sock"
OWN_FOLDER = "moorage"

REACH_SECONDS = 5.0
"""How long the answer of a predecessor is awaited."""

FILES = 65536
"""Soft limit of open files. Each plugin takes two: its socket, and the kubelet's connection."""


class DevicePlugins:
    """All device plugins of this node."""

    def __init__(
        self,
        folder: Path,
        answers: AnswersKubelet,
        pace: Pace | None = None,
        follower: FollowsLists | None = None,
    ) -> None:
        """Create.

        Args:
            folder: The kubelet's folder `device-plugins`.
            answers: Answers calls about devices.
            pace: Times of registrations.
            follower: Called about the lists that the kubelet was sent.
        """
        self._folder = folder / OWN_FOLDER
        self._answers = answers
        self._follower = follower
        self._pace = pace or Pace()
        self._kubelet = KubeletSocket(folder / KUBELET_SOCKET)
        self._endpoints: dict[str, Endpoint] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._limiter = asyncio.Semaphore(self._pace.at_once)
        self._changed = asyncio.Event()
        self._predecessor_known = asyncio.Event()
        self._unreachable = self._offered = self._has_predecessor = False

    @property
    def is_introduced(self) -> bool:
        """Whether there are lists, and the kubelet was told of each of them."""
        return self._offered and all(one.is_introduced for one in self._endpoints.values())

    def offer(self, lists: PluginLists) -> None:
        """Offer these lists and no others. Call it in the thread of the event loop.

        New plugins are registered, plugins without a list end, and changed lists are sent. If two
        plugins have the same resource, the last one counts.
        """
        wanted = {str(plugin): (plugin, devices) for plugin, devices in lists.items()}
        for resource in [name for name in self._endpoints if name not in wanted]:
            self._end(resource)
        for resource, (plugin, devices) in wanted.items():
            if resource not in self._endpoints:
                self._add(resource, plugin)
            self._endpoints[resource].service.offer(plugin, devices)
        self._offered = True

    def resend(self, plugin: Plugin) -> None:
        """Send the unchanged list again, if the plugin is offered."""
        if endpoint := self._endpoints.get(str(plugin)):
            endpoint.service.resend()

    async def run(self) -> NoReturn:
        """Serve and register until cancelled, then complete running calls."""
        _allow_files(FILES)
        await asyncio.to_thread(_remove_dead_sockets, self._folder)
        outlasting = asyncio.create_task(self._outlast_predecessor())
        try:
            await self._predecessor_known.wait()
            while True:
                self._register_due()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pace.look_seconds):
                        await self._changed.wait()
                self._changed.clear()
        finally:
            outlasting.cancel()
            await self._close()

    async def _outlast_predecessor(self) -> None:
        """Find out whether another process serves this folder; if so, wait for its end.

        The predecessor may end this one resource only. The kubelet then drops its other resources
        when it ends.
        """
        try:
            served = next(self._folder.glob("*.sock"), None)
            if served is None:
                return
            async with unix_channel(served) as channel:
                async with asyncio.timeout(REACH_SECONDS):
                    await channel.channel_ready()
                self._has_predecessor = True
                self._predecessor_known.set()
                await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        except TimeoutError:
            return
        finally:
            self._predecessor_known.set()
        await asyncio.sleep(self._pace.farewell_seconds)
        self._has_predecessor = False
        for endpoint in self._endpoints.values():
            endpoint.predecessor_ended()

    def _register_due(self) -> None:
        self._kubelet.look()
        due = [
            endpoint
            for resource, endpoint in self._endpoints.items()
            if resource not in self._closing and endpoint.is_due(self._kubelet)
        ]
        if not due:
            return
        # The socket of a killed kubelet remains.
        unreachable = self._kubelet.run is None or is_dead(self._kubelet.path)
        if unreachable != self._unreachable:
            self._unreachable = unreachable
            logger.info("The kubelet %s", "does not answer" if unreachable else "answers again")
        if not unreachable:
            for endpoint in due:
                endpoint.introduce(self._kubelet, self._limiter)

    def _add(self, resource: str, plugin: Plugin) -> None:
        endpoint = Endpoint(
            self._folder, plugin, self._answers, self._pace, lambda: self._has_predecessor
        )
        if self._follower:
            endpoint.unwatched = partial(self._follower.closed, resource)
            endpoint.watched = partial(self._follower.opened, resource)
            endpoint.service.sent = partial(self._follower.sent, resource)
        self._endpoints[resource] = endpoint
        self._changed.set()

    def _end(self, resource: str) -> None:
        endpoint = self._endpoints.pop(resource)
        endpoint.service.end()
        before = self._closing.get(resource)
        if before is None:
            task = asyncio.create_task(self._close_endpoint(endpoint))
            self._closing[resource] = task
            task.add_done_callback(lambda _: self._forget_closed(resource))

    async def _close_endpoint(self, endpoint: Endpoint) -> None:
        await endpoint.close()
        await asyncio.sleep(self._pace.again_seconds)

    def _forget_closed(self, resource: str) -> None:
        del self._closing[resource]
        self._changed.set()

    async def _close(self) -> None:
        """End all streams without an empty list: the devices are offered again after a restart."""
        closing = [endpoint.close() for endpoint in self._endpoints.values()]
        await asyncio.gather(*closing, *self._closing.values(), return_exceptions=True)


def _remove_dead_sockets(folder: Path) -> None:
    """Remove the sockets of killed processes."""
    for path in folder.glob("*.sock"):
        if is_dead(path):
            path.unlink(missing_ok=True)


def _allow_files(number: int) -> None:
    """Raise the soft limit of open files, often 1,024, as far as the hard limit allows."""
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    wanted = number if hard == limits.RLIM_INFINITY else min(number, hard)
    if soft != limits.RLIM_INFINITY and soft < wanted:
        limits.setrlimit(limits.RLIMIT_NOFILE, (wanted, hard))
