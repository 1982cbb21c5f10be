"""Purity by name: whoever does more than decide is named after who it talks to.

A module that imports a clock, a socket, a file, a logger, asyncio or a client, or a module that
does, is named after an outside party: `apiserver_gates`, `disk_checkpoint`, `kubelet_claims`. All
others are named after a domain noun, and are pure: what they decide follows from what they are
given, and their tests need nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPONENTS = ("driver", "scheduler_plugin", "binder", "webhook", "kube")

OUTSIDE = frozenset(
    """
    aiohttp asyncio asyncua grpc httptools kubernetes logging os pathlib prometheus_client pyudev
    random select signal socket ssl subprocess tempfile threading time uvicorn uvloop
    """.split()
)
"""What a module needs to see or change anything outside."""

PARTIES = (
    "apiserver",
    "agent",
)
"""What a module's name, or its room's, begins or ends with, if it talks to somebody."""


def sources() -> dict[str, Path]:
    """All modules but those that are generated."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for component in COMPONENTS
        for path in (ROOT / component).rglob("*.py")
        if not path.stem.endswith(("_pb2", "_pb2_grpc"))
    }


def imports(source: str) -> Iterator[str]:
    """Dotted names of all that is imported, be it a module or something in one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)

def impure(texts: Mapping[str, str]) -> dict[str, str]:
    """Each module that talks to somebody, and the import through which it does."""
    found: dict[str, str] = {}
    used = {name: tuple(imports(text)) for name, text in texts.items()}
    grew = True
    while grew:
        grew = False
        for name, ways in used.items():
            if name in found:
                continue
            for way in ways:
                target = way if way in texts else way.rpartition(".")[0]
                if way.split(".")[0] in OUTSIDE or target in found and target!=name:
                    found[name] = way
                    grew = True
                    break
    return found
