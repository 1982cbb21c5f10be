"""The built-in discovery handlers, by the name that a Configuration gives.

A handler is imported when it is first used: its libraries take megabytes, and most nodes use one
handler. Parsing details needs none of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from driver.api import Problem
from driver.discovery.contract import DiscoveryHandler
from driver.discovery.reach import SENDERS_ONLY, Reach

DEBUG_ECHO_FILE = Path("/tmp/debug-echo-availability.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """Settings of the built-in handlers.

    Attributes:
        rescan_interval: How often udev reads all devices anew, in case it missed an event.
        rediscovery_interval: How often onvif and opcua poll the network; Akri's default.
        reach: Which addresses that come from the network are contacted.
        debug_echo_file: The file that takes debugEcho's devices offline, see `debug_echo`.
        debug_echo_shared: Whether debugEcho's devices are shared if the details do not say.
    """

    rescan_interval: timedelta = timedelta(seconds=60)
    rediscovery_interval: timedelta = timedelta(seconds=10)
    reach: Reach = SENDERS_ONLY
    debug_echo_file: Path = DEBUG_ECHO_FILE
    debug_echo_shared: bool = True


HANDLER_NAMES = ("debugEcho", "onvif", "opcua", "udev")
"""The handlers that are part of Moorage."""


@lru_cache(maxsize=64)
def parse_details(name: str, details: str) -> object | tuple[Problem, ...]:
    """The parsed details for a built-in handler, or every problem with them.

    The result is cached, because each write to a Configuration validates all of it again.

    Args:
        name: One of `HANDLER_NAMES`.
        details: The text in the Configuration.
    """
    match name:
        case "debugEcho":
            from driver.discovery.debug_echo.handler import parse_debug_echo_details

            return parse_debug_echo_details(details)
        case "onvif":
            from driver.discovery.onvif.details import parse_onvif_details

            return parse_onvif_details(details)
        case "opcua":
            from driver.discovery.opcua.details import parse_opcua_details

            return parse_opcua_details(details)
        case "udev":
            from driver.discovery.udev.details import parse_udev_details

            return parse_udev_details(details)
        case _:
            raise KeyError(name)


def is_shared_by_default(name: str, settings: HandlerSettings) -> bool:
    """Whether several nodes may see one device of this handler, unless its details say otherwise.

    An external handler says so once, for all Configurations, when it registers.
    """
    return settings.debug_echo_shared if name == "debugEcho" else name in ("onvif", "opcua")


def check_details(name: str, details: str) -> tuple[Problem, ...]:
    """The problems with a Configuration's details; () if there is none.

    Only a handler knows its details. So the details of an external handler are not checked; it may
    register at any time.
    """
    parsed = parse_details(name, details) if name in HANDLER_NAMES else None
    return parsed if isinstance(parsed, tuple) else ()


class Handlers:
    """One handler of each name, created at its first use.

    Args:
        settings: Their settings.
        names: The handlers that run in this process.
    """

    def __init__(self, settings: HandlerSettings, names: Collection[str] = HANDLER_NAMES) -> None:
        self._settings = settings
        self._names = frozenset(names)
        self._made: dict[str, DiscoveryHandler[Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def named(self, name: str) -> DiscoveryHandler[Any]:
        """The handler of this name; it must be one that runs in this process."""
        if name not in self._made:
            self._made[name] = _built(name, self._settings)
        return self._made[name]


def _built(name: str, settings: HandlerSettings) -> DiscoveryHandler[Any]:
    match name:
        case "debugEcho":
            from driver.discovery.debug_echo.handler import DebugEchoHandler

            return DebugEchoHandler(settings.debug_echo_file, shared=settings.debug_echo_shared)
        case "onvif":
            from driver.discovery.onvif.handler import OnvifHandler

            return OnvifHandler(settings.rediscovery_interval, settings.reach)
        case "opcua":
            from driver.discovery.opcua.handler import OpcuaHandler

            return OpcuaHandler(settings.rediscovery_interval, settings.reach)
        case "udev":
            from driver.discovery.udev.handler import UdevHandler
            from driver.discovery.udev.netlink_watch import UdevSettings

            return UdevHandler(UdevSettings(rescan_interval=settings.rescan_interval))
        case _:
            raise KeyError(name)
