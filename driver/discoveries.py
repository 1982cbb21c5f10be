"""Discoveries: one conversation with a discovery handler for each Configuration in force."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from driver.api import Configuration, ConfigurationName
from driver.discovery.handlers import DiscoveryHandler, parse_details
from driver.inventory import Heard
from kube.api import Backoff

logger = logging.getLogger(__name__)


class HandlersByName(Protocol):
    """The handlers of this process, see `discovery.handlers.Handlers`."""

    def named(self, name: str) -> DiscoveryHandler[Any]:
        """The handler of this name."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a handler is asked; the rest of a Configuration does not concern it."""

    uid: str
    handler: str
    details: str


class Discoveries:
    """Keeps what every handler said last.

    Attributes:
        heard: The last answer of each Configuration that is followed and was answered once.
    """

    def __init__(
        self, handlers: HandlersByName, tasks: asyncio.TaskGroup, on_answer: Callable[[], None]
    ) -> None:
        self.heard: dict[ConfigurationName, Heard] = {}
        self._handlers = handlers
        self._tasks = tasks
        self._on_answer = on_answer
        self._asked: dict[ConfigurationName, tuple[_Question, asyncio.Task[None]]] = {}

    @property
    def complete(self) -> bool:
        """Whether every Configuration that is followed was answered."""
        return self._asked.keys() <= self.heard.keys()

    def follow(self, configurations: Iterable[Configuration]) -> None:
        """Ask for these and no others from now on.

        The answer to an older version of a Configuration stays until the new one is answered.
        """
        wanted = {c.name: _Question(c.uid, c.handler, c.discovery_details) for c in configurations}
        for name, (question, _) in list(self._asked.items()):
            if wanted.get(name) != question:
                self._end(name, forget=name not in wanted)
        for name, question in wanted.items():
            if name not in self._asked:
                task = self._tasks.create_task(self._ask(name, question), name=f"discover {name}")
                self._asked[name] = (question, task)

    def _end(self, name: ConfigurationName, *, forget: bool) -> None:
        _, task = self._asked.pop(name)
        task.cancel()
        if forget:
            self.heard.pop(name, None)

    async def _ask(self, name: ConfigurationName, question: _Question) -> None:
        """Listen while the Configuration is in force; a handler that fails is asked again."""
        backoff = Backoff()
        failures = 0
        while True:
            try:
                await self._listen(name, question)
            except Exception:
                logger.exception("discovery failed configuration=%s", name)
            failures += 1
            await asyncio.sleep(backoff.delay(failures, random.random))

    async def _listen(self, name: ConfigurationName, question: _Question) -> None:
        details = parse_details(question.handler, question.details)
        handler = self._handlers.named(question.handler)
        answers, shared = handler.discover(details), handler.is_shared(details)
        async with aclosing(answers):
            async for devices in answers:
                logger.info("discovered configuration=%s devices=%d", name, len(devices))
                self.heard[name] = Heard(question.uid, devices, shared)
                self._on_answer()
