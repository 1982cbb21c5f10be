"""The file in which a driver keeps its discovery handlers, for its next run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from driver.handlers.table import Endpoint, Registration

_FIELDS = {"name": str, "address": str, "network": bool, "shared": bool}


def dump(registrations: Iterable[Registration], removed: Collection[str] = ()) -> bytes:
    """The content of the file.

    Args:
        registrations: Of the handlers that there are.
        removed: See `HandlerTable.removed`.
    """
    handlers = [
        {
            "name": registration.endpoint.name,
            "address": registration.endpoint.address,
            "network": registration.network,
            "shared": registration.shared,
            "tls": registration.tls,
        }
        for registration in registrations
    ]
    content = {"version": 1, "handlers": handlers, "removed": sorted(removed)}
    return json.dumps(content, indent=1).encode()


def load(content: bytes) -> tuple[Registration, ...]:
    """The registrations in a file, as far as it can be read: handlers register again anyway."""
    try:
        entries = json.loads(content)["handlers"]
        return tuple(_registration(entry) for entry in entries)
    except (ValueError, TypeError, KeyError):
        return ()


def load_removed(content: bytes) -> frozenset[str]:
    """The names of removed handlers in a file; none where it cannot be read."""
    try:
        names = json.loads(content).get("removed", ())
        return frozenset(name for name in names if isinstance(name, str))
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _registration(entry: dict[str, object]) -> Registration:
    for name, kind in _FIELDS.items():
        if type(entry[name]) is not kind:
            raise ValueError(f"{name} is no {kind.__name__}")
    endpoint = Endpoint(str(entry["name"]), str(entry["address"]))
    return Registration(
        endpoint,
        network=bool(entry["network"]),
        shared=bool(entry["shared"]),
        tls=entry.get("tls") is True,  # earlier versions knew none
    )
