"""Discovery handlers of this process, by the name that a Configuration gives them.

What a handler needs is imported when its name first comes up: its libraries take megabytes, and
most nodes use one handler. Parsing needs none of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from driver.api import Problem
from driver.devices import Device
from driver.discovery.details import shown

Details = TypeVar("Details", contravariant=True)

DEBUG_ECHO_FILE = Path("/tmp/debug-echo-availability.txt")


class DiscoveryHandler(Protocol[Details]):
    """Finds devices of one kind."""

    name: str

    @property
    def problem(self) -> str | None:
        """Why devices cannot be discovered now, in one sentence; the handler keeps trying."""

    def is_shared(self, details: Details) -> bool:
        """Whether several nodes may see one and the same device that these details ask for."""

    def discover(self, details: Details) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all devices, sorted by id, and again whenever they change.

        Nothing is yielded before the devices are known, so that 'none' is never mistaken for
        'not heard yet', nor while they cannot be known.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """What handlers are told.

    Attributes:
        rescan_interval: The safety net under events.
        debug_echo_file: What takes debugEcho's devices away, see `debug_echo`.
    """

    rescan_interval: timedelta = timedelta(seconds=60)
    debug_echo_file: Path = DEBUG_ECHO_FILE


@dataclass(frozen=True, slots=True)
class _Entry:
    parse: Callable[[str], object]
    build: Callable[[HandlerSettings], DiscoveryHandler[Any]]


def _parse_udev(details: str) -> object:
    from driver.discovery.udev_details import parse_udev_details

    return parse_udev_details(details)


def _build_udev(settings: HandlerSettings) -> DiscoveryHandler[Any]:
    from driver.discovery.udev import UdevHandler
    from driver.discovery.udev_watch import UdevSettings

    return UdevHandler(UdevSettings(rescan_interval=settings.rescan_interval))


def _parse_debug_echo(details: str) -> object:
    from driver.discovery.debug_echo_details import parse_debug_echo_details

    return parse_debug_echo_details(details)


def _build_debug_echo(settings: HandlerSettings) -> DiscoveryHandler[Any]:
    from driver.discovery.debug_echo import DebugEchoHandler

    return DebugEchoHandler(settings.debug_echo_file)


_HANDLERS = {
    "debugEcho": _Entry(_parse_debug_echo, _build_debug_echo),
    "udev": _Entry(_parse_udev, _build_udev),
}


def parse_details(name: str, details: str) -> object | tuple[Problem, ...]:
    """The details as the handler of that name takes them, or all that is wrong with them."""
    entry = _HANDLERS.get(name)
    if entry is None:
        sentence = f"{shown(name)} is no known handler; there are {', '.join(sorted(_HANDLERS))}."
        return (Problem("spec.discoveryHandler.name", sentence),)
    return entry.parse(details)


def check_details(name: str, details: str) -> tuple[Problem, ...]:
    """What is wrong with a Configuration's handler or its details; () for nothing."""
    parsed = parse_details(name, details)
    return parsed if isinstance(parsed, tuple) else ()


class Handlers:
    """One handler of each name, made when it is first asked for."""

    def __init__(self, settings: HandlerSettings) -> None:
        self._settings = settings
        self._made: dict[str, DiscoveryHandler[Any]] = {}

    def named(self, name: str) -> DiscoveryHandler[Any]:
        """The handler of a name for which `parse_details` found no problem."""
        if name not in self._made:
            self._made[name] = _HANDLERS[name].build(self._settings)
        return self._made[name]
