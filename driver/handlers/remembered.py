"""The file of discovery handlers, from which the next run of the driver restores the table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict

from driver.handlers.registrations import Endpoint, Registration, Remembered

_FIELDS = {"name": str, "address": str, "network": bool, "shared": bool}


def dump(remembered: Iterable[Remembered], removed: Collection[str] = ()) -> bytes:
    """The content of the file.

    Args:
        remembered: The records of the registered handlers.
        removed: See `HandlerTable.removed`.
    """
    content = {"version": 1, "handlers": list(map(_entry, remembered)), "removed": sorted(removed)}
    return json.dumps(content, indent=1).encode()


def _entry(remembered: Remembered) -> Mapping[str, object]:
    r = remembered.registration
    flags = {"network": r.network, "shared": r.shared, "tls": r.tls}
    return {**asdict(r.endpoint), **flags, "runs": remembered.runs}


def load(content: bytes) -> tuple[Remembered, ...]:
    """The handlers in a file; () if it is unreadable: handlers register again anyway."""
    try:
        entries = json.loads(content)["handlers"]
        return tuple(Remembered(_registration(entry), _runs(entry)) for entry in entries)
    except (ValueError, TypeError, KeyError):
        return ()


def _runs(entry: Mapping[str, object]) -> int:
    """The runs in an entry; earlier versions stored none."""
    runs = entry.get("runs", 0)
    if type(runs) is not int or runs < 0:
        raise ValueError("runs is no number")
    return runs


def load_removed(content: bytes) -> frozenset[str]:
    """The names of removed handlers in a file; none if it is unreadable."""
    try:
        names = json.loads(content).get("removed", ())
        return frozenset(name for name in names if isinstance(name, str))
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _registration(entry: Mapping[str, object]) -> Registration:
    for name, kind in _FIELDS.items():
        if type(entry[name]) is not kind:
            raise ValueError(f"{name} is no {kind.__name__}")
    endpoint = Endpoint(str(entry["name"]), str(entry["address"]))
    return Registration(
        endpoint,
        network=bool(entry["network"]),
        shared=bool(entry["shared"]),
        tls=entry.get("tls") is True,  # earlier versions stored none
    )
