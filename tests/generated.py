"""The command line of what is generated into the tree: written anew, or compared.

python -m tests.MODULE --write     anew into the files
python -m tests.MODULE --check     compare, and change nothing
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def run(
    module: str, about: str | None, write: Callable[[], None], stale: Callable[[], Iterable[str]]
) -> list[str]:
    """Do what the command line says; returns what `stale` complained about, if it was asked."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="generate into the files")
    what.add_argument("--check", action="store_true", help="compare, and change nothing")
    if parser.parse_args().write:
        write()
        return []
    return list(stale())
