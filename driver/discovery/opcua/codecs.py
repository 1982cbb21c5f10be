"""asyncua's types and codecs, without its client and server.

The package imports both at its door, with cryptography and the standard address space: 25 MiB, of
which the codecs are 10. A driver asks for nothing but FindServers, without encryption.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType

PACKAGES = ("asyncua", "asyncua.common")


@contextmanager
def _doors_closed() -> Iterator[None]:
    """Import modules of these packages without what the packages import themselves."""
    closed = [name for name in PACKAGES if name not in sys.modules]
    for name in closed:
        sys.modules[name] = _without_contents(name)
    try:
        yield
    finally:
        for name in closed:
            del sys.modules[name]


def _without_contents(name: str) -> ModuleType:
    spec = find_spec(name)
    assert spec
    assert spec.submodule_search_locations
    package = ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    return package


with _doors_closed():
    from asyncua import ua
    from asyncua.common.utils import Buffer as Readable
    from asyncua.common.utils import NotEnoughData
    from asyncua.ua.ua_binary import (
        header_from_binary,
        header_to_binary,
        struct_from_binary,
        struct_to_binary,
        uatcp_to_binary,
    )
    from asyncua.ua.uaerrors import UaStatusCodeError

__all__ = [
    "Answer",
    "Buffer",
    "Servers",
    "UaStatusCodeError",
    "header_from_binary",
    "header_to_binary",
    "struct_from_binary",
    "struct_to_binary",
    "ua",
    "uatcp_to_binary",
]


class Buffer(Readable):  # type: ignore[misc]
    """Bytes that are read once.

    A text of a length below zero would take the codecs back, to read the same for ever.
    """

    def read(self, size: int) -> bytes:
        if size < 0:
            raise NotEnoughData(f"{size} bytes")
        return bytes(super().read(size))


@dataclass
class Opaque:
    """An ExtensionObject that is not looked into.

    The codecs would make any of their classes of it, among them lists without an end in a few
    bytes (of nulls).
    """

    TypeId: ua.NodeId
    Encoding: ua.Byte = field(default=0, init=False)
    Body: ua.ByteString | None = None


@dataclass
class Answer:
    """What every answer starts with: its type, and the fields of ResponseHeader."""

    type_id: ua.NodeId
    timestamp: ua.Int64
    request_handle: ua.UInt32
    service_result: ua.StatusCode
    service_diagnostics: ua.DiagnosticInfo
    string_table: list[ua.String]
    additional_header: Opaque


@dataclass
class Servers:
    """The rest of FindServersResponse."""

    servers: list[ua.ApplicationDescription]
