"""Has a process evaluate CEL for devices about which answers are missing, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence

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
        requests: Collection[DeviceRequest],
        devices: Sequence[DeviceId],
        reported: Collection[str] = (),
    ) -> Mapping[DeviceRequest, frozenset[str]]:
        """Have everything evaluated that some requests need to know of some devices.

        No request waits for another: the same devices are evaluated for each before the next. What
        takes too long is not evaluated again. What is not evaluated in time is missing still, so
        that the devices may fit, and comes first the next time.

        Args:
            requests: Each once.
            devices: Those that are offered no more are left out.
            reported: Digests of expressions that the pods' own conditions say take too long.

        Returns:
            For each request the digests of expressions that take too long.

        Raises:
            NotEvaluatedError: No process evaluates. What was answered until then is kept.
        """
        loop, skipped = asyncio.get_running_loop(), {r: _reported_of(r, reported) for r in requests}
        end = loop.time() + self._seconds
        for part in _parts(devices):
            for request in requests:
                await self._evaluate(request, part, skipped[request])
            if loop.time() >= end:
                break
            # Where all is answered, nothing above lets others go on.
            await asyncio.sleep(0)
        return {request: self._too_slow(request, skipped[request]) for request in requests}

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
