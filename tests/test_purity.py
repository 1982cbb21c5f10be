"""Purity by name: whoever does more than decide is named after who it talks to.

A module that imports a clock, a socket, a file, a logger, asyncio or a client, or a module that
does, has an outside party at the beginning or the end of its name, or a room that is one:
`apiserver_gates`, `disk_checkpoint`, `kubelet/usage`. All others are named after a domain noun and
are pure: what they decide follows from what they are given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPONENTS = ("driver", "scheduler_plugin", "binder", "webhook", "kube")

OUTSIDE = frozenset(
    {
        *("aiohttp", "asyncio", "asyncua", "grpc", "httptools", "kubernetes", "logging"),
        *("opentelemetry", "os", "pathlib", "prometheus_client", "pyudev", "random", "select"),
        *("signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "uvicorn"),
        "uvloop",
    }
)
"""What it takes to see or change anything outside."""

PARTIES = frozenset(
    {
        # Who is talked to.
        *("apiserver", "camera", "cameras", "cluster", "disk", "handler", "handlers", "http"),
        *(
            "https",
            "kube_scheduler",
            "kubelet",
            "netlink",
            "node",
            "prometheus",
            "reconcilers",
            "servers",
        ),
        # By which means.
        *(
            "channel",
            "channels",
            "client",
            "opentelemetry",
            "sdk",
            "server",
            "service",
            "socket",
            "sysfs",
            "threads",
        ),
        *("tls",),
        # The process itself.
        *("__main__", "arguments", "kubectl", "main", "processes", "settings"),
    }
)

ROOMS = frozenset({"cluster", "kubectl", "kubelet"})
"""Rooms that are an outside party, so that their modules need not say it again."""

DOOR = "api"
"""Name of the module of a room that hands out the shell, too."""

NAMED_BEFORE = frozenset(
    {
        "kube.key_locks",
        "webhook.lookups",
    }
)
"""Modules whose names do not say it yet; there are to be fewer."""


def sources() -> dict[str, str]:
    """The text of every module that is not generated."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
            path.read_text()
        )
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
    """Each module that reaches outside, and an import by which it does."""
    used = {name: tuple(imports(text)) for name, text in texts.items()}
    found: dict[str, str] = {}
    before = -1
    while len(found) > before:
        before = len(found)
        for name, ways in used.items():
            reaching = (way for way in ways if _reaches(way, texts, found))
            if name not in found and (way := next(reaching, None)):
                found[name] = way
    return found


def _reaches(way: str, texts: Mapping[str, str], found: Mapping[str, str]) -> bool:
    module = way if way in texts else way.rpartition(".")[0]
    return way.partition(".")[0] in OUTSIDE or module in found


def says_so(module: str) -> bool:
    """Whether a module's name, or its room's, is one of an outside party."""
    _, *rooms, name = module.split(".")
    if ROOMS.intersection(rooms) or name == DOOR:
        return True
    return any(name == p or name.startswith(f"{p}_") or name.endswith(f"_{p}") for p in PARTIES)


def unnamed(texts: Mapping[str, str]) -> dict[str, str]:
    """Modules that reach outside and do not say so, with what they import for it."""
    return {name: way for name, way in impure(texts).items() if not says_so(name)}


def test_whoever_reaches_outside_says_so_in_its_name() -> None:
    found = unnamed(sources())

    assert {name: way for name, way in found.items() if name not in NAMED_BEFORE} == {}
    assert found.keys() >= NAMED_BEFORE, "a name was put right: take it out of NAMED_BEFORE"


def test_rooms_and_doors_that_are_parties_exist() -> None:
    texts = sources()

    assert {part for name in texts for part in name.split(".")} >= ROOMS


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "from time import monotonic",
        "from os import path",
        "def late() -> None:\n    import logging.handlers",
        "from driver.running.node.node_main import run",
        "from driver.running.node import node_main",
    ],
)
def test_a_decision_that_reaches_outside_is_found(source: str) -> None:
    texts = {"driver.running.node.node_main": "import socket", "driver.claims": source}

    assert unnamed(
        texts | {"driver.preparing.grants.claims": "from driver.claims import x"}
    ).keys() == {
        "driver.claims",
        "driver.preparing.grants.claims",
    }


@pytest.mark.parametrize(
    "name",
    [
        "driver.handlers.tls",
        "binder.cleanup.apiserver_claim_cleanup",
        "driver.device_plugin.kubelet.usage",
    ],
)
def test_who_is_named_after_a_party_may(name: str) -> None:
    assert unnamed({name: "import asyncio"}) == {}


def test_a_decision_by_values_is_pure() -> None:
    assert unnamed({"driver.claims": "from datetime import datetime\nimport hashlib"}) == {}
