"""Sources: who is asked for the devices of a Configuration, be it in this process or in others.

Configuration ──► Question ──► each source of its handler's name ──► Answers
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from driver.api import Configuration, ConfigurationName, ValueReference
from driver.devices import Device
from driver.discovery.contract import DiscoveryHandler, Properties
from driver.discovery.handlers import parse_details

EMBEDDED = ""
"""The key of the source in this process; it sorts first, so its devices win."""


class DiscoveryError(Exception):
    """Raised when a source has no more to say for now; the text is a sentence for users."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a handler is asked; the rest of a Configuration does not concern it.

    Attributes:
        uid: Of the Configuration; one recreated under its name asks anew.
        properties: `discoveryProperties` by name; when one changes, it is another question. They
            may be passwords, so they are never shown.
        secrets: Names of those that are kept in Secrets.
    """

    uid: str
    handler: str
    details: str
    properties: tuple[tuple[str, bytes | None], ...] = field(default=(), repr=False)
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """All devices that a source has for a question.

    Attributes:
        shared: Whether other nodes may see the very same devices.
    """

    devices: tuple[Device, ...]
    shared: bool

    def after(self, before: Answer | None) -> Answer:
        """The same answer; a device that was in the one before is the very same object.

        What follows from it is then known, see `derived`: a list that comes from another process
        is made of new objects each time.
        """
        known = {device.id: device for device in before.devices} if before else {}
        devices = (known[d.id] if known.get(d.id) == d else d for d in self.devices)
        return Answer(tuple(devices), self.shared)


class Source(Protocol):
    """One handler, in this process or behind an endpoint. Equal ones are the same source."""

    @property
    def key(self) -> str:
        """Tells apart the sources of one handler name."""

    @property
    def is_awaited(self) -> bool:
        """Whether nothing of a Configuration is gone before this source has answered."""

    def answers(self, name: ConfigurationName, question: Question) -> AsyncGenerator[Answer, None]:
        """Yield all devices, and again whenever they change; see `DiscoveryHandler.discover`.

        Raises:
            DiscoveryError: If it cannot; it may be asked again.
        """

    async def pause(self, seconds: float) -> None:
        """Let time pass before it is asked again; less, if there is reason to."""


class Sources(Protocol):
    """All sources."""

    def of(self, handler: str) -> Collection[Source]:
        """Those of a handler's name."""

    def was_removed(self, handler: str) -> bool:
        """Whether a source of this name was removed, so that nobody reports its devices now."""


ReadProperties = Callable[[Configuration], Properties | None]
"""The `discoveryProperties` of a Configuration, resolved; None while they cannot be."""


def question_of(configuration: Configuration, properties: Mapping[str, bytes | None]) -> Question:
    """What the handler of a Configuration is asked."""
    return Question(
        configuration.uid,
        configuration.handler,
        configuration.discovery_details,
        tuple(sorted(properties.items())),
        frozenset(
            name
            for name, value in configuration.discovery_properties.items()
            if isinstance(value, ValueReference) and value.kind == "Secret"
        ),
    )


@dataclass(frozen=True, slots=True)
class EmbeddedSource:
    """A handler of this process."""

    key: ClassVar[str] = EMBEDDED
    is_awaited: ClassVar[bool] = True

    handler: DiscoveryHandler[Any]

    async def answers(
        self, name: ConfigurationName, question: Question
    ) -> AsyncGenerator[Answer, None]:
        details = parse_details(question.handler, question.details)
        found = self.handler.discover(details, dict(question.properties))
        async with aclosing(found):
            async for devices in found:
                yield Answer(devices, self.handler.is_shared(details))

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def pause_until(event: asyncio.Event, seconds: float | None) -> None:
    """Let time pass until the event is set, or so many seconds are over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
