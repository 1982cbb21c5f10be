"""Evaluates missing CEL results in a separate process, some devices at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from kube.cel.api import CelProcess, TooSlowError, digest_of
from scheduler_plugin.objects.api import DeviceId
from scheduler_plugin.reclaiming.api import (
    Answers,
    DeviceCriteria,
    Expressions,
    OfferedDevices,
    Unanswered,
    evaluable,
)

IN_ONE_CALL = 500
"""The largest number of devices of one call. The process may use 0.3 s of CPU for them, and this
process decodes them in 5 ms."""

EVALUATE_SECONDS = 10.0
"""How long one evaluation goes on; the rest is left for the next one."""


class Evaluated(NamedTuple):
    """The result of an evaluation.

    Attributes:
        too_slow: The digests of expressions that take too long.
        is_complete: Whether all devices were evaluated.
    """

    too_slow: frozenset[str]
    is_complete: bool


class SelectorEvaluator:
    """Evaluates selectors, and enters the results in `Answers`."""

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
        criteria: DeviceCriteria,
        devices: Sequence[DeviceId],
        reported: Collection[str] = (),
    ) -> Evaluated:
        """Evaluate all selectors of a request for some devices.

        Expressions that take too long are not evaluated again. Results that are not computed in
        time stay missing, so that the devices may match.

        Args:
            criteria: The criteria.
            devices: The devices; those that are not offered any more are left out.
            reported: Digests of expressions that take too long, by the conditions of the pods.

        Raises:
            NotEvaluatedError: The process does not run. Earlier results are kept.
        """
        loop, skipped = asyncio.get_running_loop(), _reported_of(criteria, reported)
        end, is_complete = loop.time() + self._seconds, True
        for part in _parts(devices):
            if not is_complete:
                break
            await self._evaluate(criteria, part, skipped)
            is_complete = loop.time() < end
            # Without missing results nothing above yields to other tasks.
            await asyncio.sleep(0)
        return Evaluated(self._too_slow(criteria, skipped), is_complete)

    async def _evaluate(
        self, criteria: DeviceCriteria, part: Sequence[DeviceId], skipped: Collection[Expressions]
    ) -> None:
        for _ in criteria.selectors:
            offers = filter(None, map(self._devices.offer, part))
            missing = self._answers.missing(criteria, offers, skipped)
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

    def _too_slow(
        self, criteria: DeviceCriteria, skipped: Collection[Expressions]
    ) -> frozenset[str]:
        return frozenset(
            digest_of(expressions)
            for expressions in evaluable(criteria.selectors)
            if expressions in skipped or self._answers.is_too_slow(expressions)
        )


def _reported_of(criteria: DeviceCriteria, reported: Collection[str]) -> frozenset[Expressions]:
    return frozenset(
        each for each in evaluable(criteria.selectors) if reported and digest_of(each) in reported
    )


def _parts(devices: Sequence[DeviceId]) -> Iterator[Sequence[DeviceId]]:
    for begin in range(0, len(devices), IN_ONE_CALL):
        yield devices[begin : begin + IN_ONE_CALL]
