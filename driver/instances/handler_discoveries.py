"""Discoveries: the conversations with discovery handlers, one for each Configuration and source.

The answers of several sources about one Configuration are merged: each device once, from the first
source that reports it. A missing answer does not mean that devices are gone: while a source that
may have reported devices before has not answered, the result is not `complete`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from driver.api import Configuration, ConfigurationName
from driver.devices import Device
from driver.handlers.handler_sources import (
    Answer,
    DiscoveryError,
    Question,
    ReadProperties,
    Source,
    Sources,
    question_of,
)
from driver.instances.inventory import Heard
from kube.backoff import Backoff

logger = logging.getLogger(__name__)

_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=30.0)
"""Far below the five minutes after which an unreachable handler is removed."""

LASTING_SECONDS = 30.0
"""A conversation that ends sooner counts as another failure, even if there was an answer."""

_Place = tuple[ConfigurationName, str]
"""A Configuration, and the key of a source."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    question: Question
    source: Source
    task: asyncio.Task[None]


class Discoveries:
    """Keeps the last answer of every handler.

    Attributes:
        heard: The devices of each followed Configuration that was answered at least once.
    """

    def __init__(
        self,
        sources: Sources,
        tasks: asyncio.TaskGroup,
        on_answer: Callable[[], None],
        read_properties: ReadProperties,
    ) -> None:
        self.heard: dict[ConfigurationName, Heard] = {}
        self._sources = sources
        self._tasks = tasks
        self._on_answer = on_answer
        self._read_properties = read_properties
        self._questions: dict[ConfigurationName, Question] = {}
        self._unasked: set[ConfigurationName] = set()
        self._conversations: dict[_Place, _Conversation] = {}
        self._answers: dict[ConfigurationName, dict[str, Answer]] = {}

    @property
    def complete(self) -> bool:
        """Whether every followed Configuration was answered by all its sources."""
        return not self._unasked and all(not self._missing(name) for name in self._questions)

    def follow(self, configurations: Iterable[Configuration]) -> None:
        """Follow these Configurations and no others from now on.

        While the properties of a Configuration cannot be read, its last question stays in force.
        The answer to an older version of a Configuration stays until the new version is answered.
        The answer of a source stays until the source is removed.
        """
        self._unasked = set()
        before, self._questions = self._questions, dict(self._wanted(configurations))
        for name, question in before.items():
            now = self._questions.get(name)
            if now is None or now.uid != question.uid:
                self._answers.pop(name, None)
                self.heard.pop(name, None)
        self._converse()
        for name in self._questions:
            self._conclude(name)

    def _wanted(
        self, configurations: Iterable[Configuration]
    ) -> Iterable[tuple[ConfigurationName, Question]]:
        for configuration in configurations:
            properties = self._read_properties(configuration)
            if properties is not None:
                yield configuration.name, question_of(configuration, properties)
            elif (last := self._questions.get(configuration.name)) and (
                last.uid == configuration.uid
            ):
                yield configuration.name, last
            else:
                self._unasked.add(configuration.name)

    def _converse(self) -> None:
        """Start and end conversations, so that the wanted ones run."""
        wanted: dict[_Place, tuple[Question, Source]] = {
            (name, source.key): (question, source)
            for name, question in self._questions.items()
            for source in self._sources.of(question.handler)
        }
        for place, conversation in list(self._conversations.items()):
            if wanted.get(place) != (conversation.question, conversation.source):
                self._conversations.pop(place).task.cancel()
            if place not in wanted:
                self._answers.get(place[0], {}).pop(place[1], None)
        for place, (question, source) in wanted.items():
            if place not in self._conversations:
                asking = self._ask(place, question, source)
                task = self._tasks.create_task(asking, name=f"discover {place[0]}")
                self._conversations[place] = _Conversation(question, source, task)

    async def _ask(self, place: _Place, question: Question, source: Source) -> None:
        """Read answers until cancelled; a source that fails is asked again."""
        clock, failures = asyncio.get_running_loop(), 0
        while True:
            began = clock.time()
            try:
                answers = source.answers(place[0], question)
                async with aclosing(answers):
                    async for answer in answers:
                        self._hear(place, answer)
            except DiscoveryError as error:
                logger.debug("discovery failed configuration=%s problem=%s", place[0], error)
            except Exception:
                logger.exception("discovery failed configuration=%s", place[0])
            failures = 1 if clock.time() - began >= LASTING_SECONDS else failures + 1
            await source.pause(_BACKOFF.delay(failures, random.random))

    def _hear(self, place: _Place, answer: Answer) -> None:
        name, key = place
        answers = self._answers.setdefault(name, {})
        before = answers.get(key)
        if before == answer:
            return
        logger.info("discovered configuration=%s devices=%d", name, len(answer.devices))
        answers[key] = answer.after(before)
        self._conclude(name)
        self._on_answer()

    def _conclude(self, name: ConfigurationName) -> None:
        """Merge what is known of a Configuration."""
        question, answers = self._questions[name], self._answers.get(name, {})
        if answers or self._sources.was_removed(question.handler):
            heard = heard_of(question.uid, answers, complete=not self._missing(name))
            if heard != self.heard.get(name):  # An equal object keeps its derived results.
                self.heard[name] = heard
        else:
            self.heard.pop(name, None)

    def _missing(self, name: ConfigurationName) -> bool:
        """Whether a source of the Configuration has not answered yet."""
        answers = self._answers.get(name, {})
        sources = self._sources.of(self._questions[name].handler)
        return any(source.is_awaited and source.key not in answers for source in sources)


def heard_of(uid: str, answers: Mapping[str, Answer], *, complete: bool) -> Heard:
    """The merged answers of the sources of a Configuration, each device once."""
    local: list[Device] = []
    shared: list[Device] = []
    ids: set[str] = set()
    for _, answer in sorted(answers.items()):
        found = shared if answer.shared else local
        for device in answer.devices:
            if device.id not in ids:
                ids.add(device.id)
                found.append(device)
    return Heard(uid, tuple(local), tuple(shared), complete)
