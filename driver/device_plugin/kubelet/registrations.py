"""Registrations of device plugins with the kubelet: when one is due, and the kubelet's socket."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from driver.device_plugin.kubelet.plugin_service import (
    plugin_options,
)
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc
from driver.plumbing.kubelet_channels import unix_channel
from driver.plumbing.kubelet_sockets import (
    SocketRun,
    socket_run,
)
from kube.backoff import Backoff

VERSION = "v1beta1"

_FAILED = Backoff(first_seconds=0.5, cap_seconds=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Times of registrations, in seconds.

    Attributes:
        look_seconds: How often the kubelet's socket is checked.
        again_seconds: Shortest time from the end of a stream to the next registration.
        patience_seconds: How long the kubelet may take to watch a plugin that it has accepted.
        lasting_seconds: A stream that ends sooner counts as a failure.
        answer_seconds: Timeout of a registration; the kubelet takes up to 10 s to reach a plugin.
        at_once: Most concurrent registrations. The kubelet writes a file for each.
        farewell_seconds: Time from the end of a predecessor's first connection to the end of all.
    """

    look_seconds: float = 0.5
    again_seconds: float = 0.5
    patience_seconds: float = 5.0
    lasting_seconds: float = 5.0
    answer_seconds: float = 15.0
    at_once: int = 8
    farewell_seconds: float = 6.0


class Registration:
    """Whether the kubelet watches a plugin, and when to register again if it does not.

    Attributes:
        failures: Consecutive attempts without a lasting stream.
    """

    def __init__(self, pace: Pace, clock: Callable[[], float]) -> None:
        self.failures = 0
        self._pace = pace
        self._clock = clock
        self._kubelet: SocketRun | None = None
        self._streams = 0
        self._opened = self._not_before = 0.0

    def is_due(self, kubelet: SocketRun | None) -> bool:
        """Whether to register now; `kubelet` is the current run, None if there is none."""
        if kubelet is None or kubelet != self._kubelet:
            return True
        return not self._streams and self._clock() >= self._not_before

    def begin(self, kubelet: SocketRun | None) -> None:
        """Note an attempt. Streams of an earlier run of the kubelet count as ended."""
        if kubelet != self._kubelet:
            self._kubelet, self._streams, self.failures = kubelet, 0, 0

    def accept(self) -> None:
        """Note that the kubelet accepted the registration; now it should watch."""
        self._not_before = self._clock() + self._pace.patience_seconds

    def fail(self) -> float:
        """Note a failed attempt; returns the seconds until the next one."""
        self.failures += 1
        delay = self._pace.again_seconds + _FAILED.delay(self.failures, random.random)
        self._not_before = self._clock() + delay
        return delay

    def open_stream(self) -> Callable[[], None]:
        """Note that the kubelet watches, and so has accepted the registration.

        Returns:
            A callback for the end of the stream.
        """
        self._streams += 1
        self._opened = self._clock()
        return partial(self._end_stream, self._kubelet)

    def _end_stream(self, kubelet: SocketRun | None) -> None:
        if kubelet != self._kubelet:
            return
        self._streams -= 1
        if self._streams:
            return
        if self._clock() - self._opened < self._pace.lasting_seconds:
            self.fail()
            return
        self.failures = 0
        self._not_before = self._clock() + self._pace.again_seconds


class KubeletSocket:
    """`v1beta1.Registration` of the kubelet.

    Attributes:
        path: Path of the kubelet's socket.
        run: The run of the kubelet that the last look found; None if there was none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: SocketRun | None = None

    def look(self) -> None:
        """Read which run of the kubelet the socket belongs to."""
        self.run = socket_run(self.path)

    async def register(self, resource: str, endpoint: str, seconds: float) -> None:
        """Register; the kubelet answers when it has reached the endpoint.

        Args:
            resource: Name of the extended resource.
            endpoint: Path of the plugin's socket, relative to the folder of the kubelet's.
            seconds: Timeout.

        Raises:
            grpc.aio.AioRpcError: The kubelet refuses, or does not answer.
        """
        request = v1beta1.RegisterRequest(
            version=VERSION, endpoint=endpoint, resource_name=resource, options=plugin_options()
        )
        async with unix_channel(self.path) as channel:
            await v1beta1_grpc.RegistrationStub(channel).Register(request, timeout=seconds)
