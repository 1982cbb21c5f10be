"""Answers of registered handlers: counted, parsed, and checked against limits and the host.

bytes ──count──► v0.DiscoverResponse ──parse──► devices ──check──► the admitted devices
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from google.protobuf.message import DecodeError

from driver.api import ConfigurationName
from driver.devices import Device
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.handler_conversations import RefusedError
from driver.handlers.handler_sources import Answer
from driver.handlers.messages import devices_of, few_problems, problem_of
from driver.handlers.registrations import Endpoint, Registration
from driver.handlers.report_limits import (
    Admitted,
    Amount,
    HandlerLimits,
    OnHost,
    admitted,
    mount_paths,
    node_paths,
    too_many,
)
from driver.handlers.report_sizes import Reported
from driver.handlers.wire_sizes import excess
from driver.plumbing.disk import real_paths
from driver.plumbing.disk_dev import HostDev
from driver.plumbing.prometheus import HANDLERS_REFUSED

Devices = tuple[Device, ...]


@dataclass(slots=True)
class LastAnswer:
    """The last answer of a conversation.

    Attributes:
        withheld: A sentence about the properties that the handler did not get; () for none.
        devices: All of its devices, while one of their device nodes is missing.
        remarks: Sentences about the answer, beside `flaws`.
        flaws: Sentences about invalid parts of the answer.
        awaits: Whether a device node is missing and may still appear.
    """

    registration: Registration
    name: ConfigurationName
    withheld: tuple[str, ...]
    devices: Devices = ()
    remarks: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()
    awaits: bool = False


class Answers:
    """Validates answers against the limits."""

    def __init__(self, limits: HandlerLimits, dev: HostDev) -> None:
        self._limits = limits
        self._dev = dev
        self._reported = Reported(limits)

    def keep(self, is_kept: Callable[[Endpoint, ConfigurationName], bool]) -> None:
        """Keep only these answers, and drop the others."""
        self._reported.keep(is_kept)

    async def take(self, last: LastAnswer, message: bytes | None) -> tuple[Answer | None, str]:
        """Parse and check one message; return the answer, and sentences about its problems.

        The answer is None if the message is refused; the answer before it then stays in force.

        Args:
            last: The conversation, and its last answer.
            message: None to check the last answer again.

        Raises:
            RefusedError: If it is too large together with the answers for other Configurations and
                of other handlers, which may go away.
        """
        if message is not None:
            response = self._read(last, message)
            if isinstance(response, str):
                return None, response
            last.devices, last.flaws = devices_of(response)
            last.remarks = (*last.withheld, *problem_of(response))
        found = await self._admitted(last.registration, last.devices)
        last.awaits = found.awaits
        last.devices = last.devices if found.awaits else ()
        answer = Answer(found.devices, last.registration.shared)
        return answer, few_problems((*last.remarks, *found.problems, *last.flaws))

    def _read(self, last: LastAnswer, message: bytes) -> v0.DiscoverResponse | str:
        """The parsed message, or a sentence: why it is refused."""
        most = self._limits.most_devices
        if sentence := excess(message, most):
            return self._refused(sentence)
        self._check(last, Amount(0, len(message)))
        try:
            response = v0.DiscoverResponse.FromString(message)
        except DecodeError:
            return "Its answer is invalid."
        if len(response.devices) > most:
            return self._refused(too_many(most))
        amount = Amount(len(response.devices), len(message))
        self._check(last, amount)
        self._reported.enter(last.registration, last.name, amount)
        return response

    def _check(self, last: LastAnswer, amount: Amount) -> None:
        if sentence := self._reported.excess(last.registration, last.name, amount):
            raise RefusedError(self._refused(sentence))

    def _refused(self, sentence: str) -> str:
        HANDLERS_REFUSED.labels("answer").inc()
        return sentence

    async def _admitted(self, registration: Registration, devices: Devices) -> Admitted:
        asks = any(device.mounts or device.device_specs for device in devices)
        host = await asyncio.to_thread(self._look, devices) if asks else OnHost()
        name, trusted = registration.endpoint.name, registration.is_trusted
        found = admitted(devices, name, self._limits, host, trusted=trusted)
        if not registration.unprivileged:
            return found
        return replace(found, devices=tuple(replace(d, unprivileged=True) for d in found.devices))

    def _look(self, devices: Devices) -> OnHost:
        return OnHost(real_paths(mount_paths(devices)), self._dev.look(node_paths(devices)))
