"""CEL, as selectors of devices are written: by a library that is loaded when somebody needs it.

What the library cannot evaluate is neither yes nor no. It knows neither quantities nor versions:
these are shown to expressions as values that nothing but themselves equals.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

REMEMBERED = 256
"""Expressions; of more, those that were asked for the longest ago are compiled anew."""


def satisfies(expression: str, device: Mapping[str, Any]) -> bool | None:
    """Whether a device satisfies an expression; None where that cannot be evaluated."""
    program = _program(expression)
    if program is None:
        return None
    try:
        found = program.execute({"device": device})
    except BaseException:  # noqa: BLE001  The expression is a user's, and may upset the library.
        return None
    return found if isinstance(found, bool) else None


@lru_cache(maxsize=REMEMBERED)
def _program(expression: str) -> Any:
    """An expression as the library wants it; None for one that it cannot read."""
    try:
        return _library().compile(expression)
    except BaseException:  # noqa: BLE001  The same.
        return None


@lru_cache(maxsize=1)
def _library() -> Any:
    """Its compiled part: the package itself imports a command line, and what colours that."""
    package = find_spec("cel")
    folders = package.submodule_search_locations if package is not None else None
    assert folders, "it is installed with this program"
    loading = (ExtensionFileLoader, EXTENSION_SUFFIXES)
    spec = FileFinder(folders[0], loading).find_spec("cel")
    assert spec is not None, "the library has a compiled part"
    assert spec.loader is not None, "which is a file"
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
