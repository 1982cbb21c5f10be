"""Has a process evaluate CEL for devices about which answers are missing, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from kube.api import CelProcess, TooSlowError, digest_of
from scheduler_plugin.api import (
    Answers,
    DeviceId,
    DeviceRequest,
    Expressions,
    OfferedDevices,
    Unanswered,
    evaluable,
)

IN_ONE_CALL = 500
"""Devices of one call. The process may use 0.3 s of CPU for them; we decode them in 5 ms."""

EVALUATE_SECONDS = 10.0
"""How long evaluating goes on before it is left for the next time."""


class Evaluated(NamedTuple):
    """What came of it.

    Attributes:
        too_slow: Digests of the expressions that take too long.
        is_complete: Whether all devices were looked at.
    """

    too_slow: frozenset[str]
    is_complete: bool


class SelectorEvaluator:
    """Fills in answers about devices."""

    def __init__(
        self,
        cel: CelProcess,
        devices: OfferedDevices,
        answers: Answers,
        seconds: float = EVALUATE_SECONDS,
    ) -> None:
        self._cel = cel
        self._devices = devices
        self._answers = answers
        self._seconds = seconds

    async def evaluate(
        self,
        request: DeviceRequest,
        devices: Sequence[DeviceId],
        reported: Collection[str] = (),
    ) -> Evaluated:
        """Have everything evaluated that a request needs to know of some devices.

        What takes too long is not evaluated again. What is not evaluated in time is missing still,
        so that the devices may fit.

        Args:
            request: For what.
            devices: Those that are offered no more are left out.
            reported: Digests of expressions that the pods' own conditions say take too long.

        Raises:
            NotEvaluatedError: No process evaluates. What was answered until then is kept.
        """
        loop, skipped = asyncio.get_running_loop(), _reported_of(request, reported)
        end, is_complete = loop.time() + self._seconds, True
        for part in _parts(devices):
            if not is_complete:
                break
            await self._evaluate(request, part, skipped)
            is_complete = loop.time() < end
            # Where all is answered, nothing above lets others go on.
            await asyncio.sleep(0)
        return Evaluated(self._too_slow(request, skipped), is_complete)

    async def _evaluate(
        self, request: DeviceRequest, part: Sequence[DeviceId], skipped: Collection[Expressions]
    ) -> None:
        for _ in request.selectors:
            offers = filter(None, map(self._devices.offer, part))
            missing = self._answers.missing(request, offers, skipped)
            if missing is None:
                return
            await self._ask(missing)

    async def _ask(self, missing: Unanswered) -> None:
        bodies = [offer.body for offer in missing.offers]
        try:
            found = await self._cel.matches(missing.expressions, bodies)
        except TooSlowError:
            self._answers.put_too_slow(missing.expressions)
        else:
            self._answers.put(missing, found)

    def _too_slow(self, request: DeviceRequest, skipped: Collection[Expressions]) -> frozenset[str]:
        return frozenset(
            digest_of(expressions)
            for expressions in evaluable(request)
            if expressions in skipped or self._answers.is_too_slow(expressions)
        )


def _reported_of(request: DeviceRequest, reported: Collection[str]) -> frozenset[Expressions]:
    return frozenset(
        each for each in evaluable(request) if reported and digest_of(each) in reported
    )


def _parts(devices: Sequence[DeviceId]) -> Iterator[Sequence[DeviceId]]:
    for begin in range(0, len(devices), IN_ONE_CALL):
        yield devices[begin : begin + IN_ONE_CALL]
