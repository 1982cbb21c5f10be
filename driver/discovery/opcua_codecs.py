"""asyncua's types and codecs, without its client and server.

The package imports both at its door, with cryptography and the standard address space: 25 MiB, of
which the codecs are 10. A driver asks for nothing but FindServers, without encryption.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    from asyncua.common.utils import Buffer
    from asyncua.ua.ua_binary import (
        header_from_binary,
        header_to_binary,
        nodeid_from_binary,
        struct_from_binary,
        struct_to_binary,
        uatcp_to_binary,
    )
    from asyncua.ua.uaerrors import UaStatusCodeError

__all__ = [
    "Buffer",
    "UaStatusCodeError",
    "header_from_binary",
    "header_to_binary",
    "nodeid_from_binary",
    "struct_from_binary",
    "struct_to_binary",
    "ua",
    "uatcp_to_binary",
]
