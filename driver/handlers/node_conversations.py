"""Conversations with all registered handlers of a node: accepted answers, and problems.

    a handler, a Configuration, its Question ──converse──► Answers
                             └──reached, lost──► the handler table

Answers are validated, see `messages`. A problem with a handler is logged when it changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from functools import partial
from itertools import count

from driver.api import ConfigurationName
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.handler_answers import Answers, LastAnswer
from driver.handlers.handler_conversations import (
    LostError,
    Terms,
    discover,
    or_pauses,
)
from driver.handlers.handler_sources import Answer, DiscoveryError, Question
from driver.handlers.messages import request_without
from driver.handlers.registrations import Conversation, Endpoint, Registration
from driver.handlers.status_entries import Report
from driver.handlers.table import HandlerTable

logger = logging.getLogger(__name__)

ON_HOLD = "The driver ended within a minute of asking it; it is asked when it registers again."

PAUSE_PER_WORK = 4.0
"""The pause after an answer of a handler, as a multiple of the time that the answer took."""

LOOK_AGAIN_SECONDS = 5.0
"""How often to look for device nodes that a handler reported and that were missing."""


class Conversations:
    """All conversations of a node.

    Args:
        table: Records which handlers are reached and lost.
        now: The clock.
        answers: Validates answers.
        terms: The limits of conversations with a handler.
        on_change: Called when the state of a handler, or a problem with one, changes.
    """

    def __init__(
        self,
        table: HandlerTable,
        now: Callable[[], datetime],
        answers: Answers,
        terms: Callable[[Registration], Terms],
        on_change: Callable[[], None],
    ) -> None:
        self._table = table
        self._now = now
        self._answers = answers
        self._terms = terms
        self._notify = on_change
        self._problems: dict[tuple[Endpoint, ConfigurationName], str] = {}
        self._numbers = count()

    def keep(self, is_kept: Callable[[Endpoint, ConfigurationName], bool]) -> None:
        """Keep only these answers and problems, and drop the others."""
        for place in [place for place in self._problems if not is_kept(*place)]:
            del self._problems[place]
        self._answers.keep(is_kept)

    def reports(self, handler: str, name: ConfigurationName) -> Iterable[Report]:
        """The reports of the handlers of a name for a Configuration."""
        for h in self._table.named(handler):
            yield Report(h.state, h.since, self._problems.get((h.endpoint, name)))

    async def converse(
        self, registration: Registration, name: ConfigurationName, question: Question
    ) -> AsyncGenerator[Answer, None]:
        """Call a handler, and yield its answers until it is lost.

        Raises:
            DiscoveryError: If the handler is lost, or refuses to answer.
        """
        endpoint, number = registration.endpoint, next(self._numbers)
        reached = partial(self._reached, endpoint, number)
        try:
            if endpoint in self._table and self._table[endpoint].on_hold:
                raise LostError(ON_HOLD)
            request, withheld = _request(registration, question)
            last = LastAnswer(registration, name, withheld)
            found = discover(registration, request, reached, self._terms(registration))
            async with aclosing(self._answered(last, found)) as answers:
                async for answer in answers:
                    yield answer
                    del answer
        except DiscoveryError as error:
            if isinstance(error, LostError):
                self._lost(endpoint, number)
            self._note_problem(endpoint, name, str(error))
            raise
        finally:
            self._table.ended(endpoint, number)

    async def _answered(
        self, last: LastAnswer, found: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[Answer, None]:
        """The accepted answers, at a pace that leaves time for other work."""
        clock = asyncio.get_running_loop().time
        messages = or_pauses(found, lambda: LOOK_AGAIN_SECONDS if last.awaits else None)
        async with aclosing(found), aclosing(messages):
            async for message in messages:
                began = clock()
                answer, problem = await self._answers.take(last, message)
                self._note_problem(last.registration.endpoint, last.name, problem)
                del message  # Free a large message while the next is awaited.
                if answer:
                    yield answer
                del answer
                await asyncio.sleep((clock() - began) * PAUSE_PER_WORK)

    def _reached(self, endpoint: Endpoint, conversation: Conversation) -> None:
        self._table.reached(endpoint, conversation, self._now())
        self._notify()

    def _lost(self, endpoint: Endpoint, conversation: Conversation) -> None:
        self._table.lost(endpoint, conversation, self._now())
        self._notify()

    def _note_problem(self, endpoint: Endpoint, name: ConfigurationName, problem: str) -> None:
        place = (endpoint, name)
        if self._problems.get(place, "") == problem:
            return
        if problem:
            logger.warning(
                "discovery handler has a problem handler=%s endpoint=%s configuration=%s: %s",
                endpoint.name,
                endpoint.address,
                name,
                problem,
            )
            self._problems[place] = problem
        else:
            del self._problems[place]
        self._notify()


def _request(
    registration: Registration, question: Question
) -> tuple[v0.DiscoverRequest, tuple[str, ...]]:
    secrets = frozenset[str]() if registration.is_trusted else question.secrets
    return request_without(secrets, question.details, dict(question.properties))
