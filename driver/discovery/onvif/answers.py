"""Answers of cameras: what matters in the objects that zeep makes of them.

A camera may leave out whatever it likes, and say what it likes in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from driver.discovery.onvif.messages import LONGEST_WORD

_INFORMATION = ("Manufacturer", "Model", "FirmwareVersion", "SerialNumber", "HardwareId")


def clock(answer: Any) -> datetime | None:
    """What a camera's clock shows; None if it does not say."""
    date, time = _told(answer, "UTCDateTime", "Date"), _told(answer, "UTCDateTime", "Time")
    try:
        day = (date.Year, date.Month, date.Day)
        return datetime(*day, time.Hour, time.Minute, time.Second, tzinfo=UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def network(answer: Any) -> tuple[str, str] | None:
    """The IP and the MAC address that a camera says it has; None if one is missing.

    Of several the first, as Akri has it.
    """
    interfaces = answer if isinstance(answer, list) else []
    ips = [ip for one in interfaces for told in _configured(one) if (ip := _words(told))]
    macs = [mac for one in interfaces if (mac := _words(_told(one, "Info", "HwAddress")))]
    return (ips[0], macs[0]) if ips and macs else None


def information(answer: Any) -> Mapping[str, str]:
    """What a camera says it is, by the names of `GetDeviceInformationResponse`."""
    told = {name: _words(_told(answer, name)) for name in _INFORMATION}
    return {name: value for name, value in told.items() if value}


def _configured(interface: Any) -> list[Any]:
    """The IPv4 addresses of a network interface, in the order of the schema."""
    config = _told(interface, "IPv4", "Config")
    several = [*(_told(config, "Manual") or ()), _told(config, "LinkLocal")]
    return [_told(one, "Address") for one in (*several, _told(config, "FromDHCP"))]


def _told(value: Any, *path: str) -> Any:
    """What is at a path of names; None where it ends before."""
    for name in path:
        value = getattr(value, name, None)
    return value


def _words(text: Any) -> str:
    words = " ".join(text.split())[:LONGEST_WORD] if isinstance(text, str) else ""
    return words if words.isprintable() else ""
