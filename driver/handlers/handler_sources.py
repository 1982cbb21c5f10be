"""Sources: the handlers that report the devices of a Configuration, embedded or external.

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
"""The key of the source in this process; it sorts first, so its devices have precedence."""


class DiscoveryError(Exception):
    """Raised when a source cannot answer now; the text is a sentence for users."""


@dataclass(frozen=True, slots=True)
class Question:
    """The request for a Configuration: all that a handler gets of it.

    Attributes:
        uid: The Configuration's; a Configuration that is created again is another question.
        properties: `discoveryProperties` by name; a changed value is another question. They may be
            passwords, so no repr shows them.
        secrets: Names of the properties that come from Secrets.
    """

    uid: str
    handler: str
    details: str
    properties: tuple[tuple[str, bytes | None], ...] = field(default=(), repr=False)
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """All devices that a source reports for a question.

    Attributes:
        shared: Whether other nodes may see the same devices.
    """

    devices: tuple[Device, ...]
    shared: bool

    def after(self, before: Answer | None) -> Answer:
        """The same answer, with the device objects of the answer before where they are equal.

        Values that are derived from a device are cached by object, see `derived`; an answer from
        another process consists of new objects each time.
        """
        known = {device.id: device for device in before.devices} if before else {}
        devices = (known[d.id] if known.get(d.id) == d else d for d in self.devices)
        return Answer(tuple(devices), self.shared)


class Source(Protocol):
    """One handler, embedded or external. Equal objects are the same source."""

    @property
    def key(self) -> str:
        """Identifies a source among those of its handler name."""

    @property
    def is_awaited(self) -> bool:
        """Whether no device of a Configuration is absent before this source has answered."""

    def answers(self, name: ConfigurationName, question: Question) -> AsyncGenerator[Answer, None]:
        """Yield all devices, and again whenever they change; see `DiscoveryHandler.discover`.

        Raises:
            DiscoveryError: If it cannot answer; the caller may ask again.
        """

    async def pause(self, seconds: float) -> None:
        """Wait before it is asked again: `seconds`, or less if the source can answer sooner."""


class Sources(Protocol):
    """All sources."""

    def of(self, handler: str) -> Collection[Source]:
        """The sources of a handler name."""

    def was_removed(self, handler: str) -> bool:
        """Whether a source of this name was removed, so that no source reports its devices now."""


ReadProperties = Callable[[Configuration], Properties | None]
"""The resolved `discoveryProperties` of a Configuration; None while one is unknown."""


def question_of(configuration: Configuration, properties: Mapping[str, bytes | None]) -> Question:
    """The question for the handler of a Configuration."""
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
    """Wait until the event is set, or `seconds` have passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
