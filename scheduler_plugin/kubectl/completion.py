"""`kubectl_complete-moorage`: what kubectl asks when somebody presses Tab after `kubectl moorage`.

kubectl gives the words so far, the last of them what is to be completed, and reads one completion a
line, with a tab before what it means, and at the end a number: 4 for "no names of files".
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import typer

from kube.api import (
    INSTANCES,
    NAMESPACES,
    PODS,
    QUEUES,
    SLICES,
    ApiClient,
    ApiError,
    JsonObject,
    KubeconfigError,
    connect,
)
from scheduler_plugin.kubectl.commands import app

NO_FILES, FILES = 4, 0
SECONDS = 3.0
"""How long the cluster may take to tell names: somebody waits at his keyboard."""

Names = Callable[[str, str], Iterable[str]]
"""The names of a kind in a namespace; kinds are the words of `_KINDS`."""

_KINDS = {
    "queues": (QUEUES,),
    "namespaces": (NAMESPACES,),
    "pods": (PODS,),
    "devices": (SLICES, INSTANCES),
}
_POSITIONAL = {"charge": "queues", "why": "pods"}
_OF_OPTIONS = {
    "--namespace": "namespaces",
    "-n": "namespaces",
    "--release-namespace": "namespaces",
    "--without-device": "devices",
}


def completions(argv: Sequence[str], names: Names) -> tuple[list[str], int]:
    """What may stand in the place of the last word, and whether it may be a file."""
    command: Any = typer.main.get_command(app)
    *before, last = argv or [""]
    words = [word for word in before if not word.startswith("-")]
    if not words:
        found = [f"{name}\t{each.help}" for name, each in command.commands.items()]
        return _beginning(found, last), NO_FILES
    chosen = command.commands.get(words[0])
    if chosen is None:
        return [], NO_FILES
    options = {opt: p for p in chosen.params for opt in (*p.opts,) if opt.startswith("-")}
    if before[-1] in options:
        return _value(options[before[-1]], before, last, names)
    if last.startswith("-"):
        flags = [f"{opt}\t{getattr(p, 'help', '') or ''}" for opt, p in options.items()]
        return _beginning(flags, last), NO_FILES
    if words[0] == "snapshot":
        return [], FILES
    kind = _POSITIONAL.get(words[0])
    return _beginning(names(kind, _namespace(before)) if kind else (), last), NO_FILES


def _value(option: Any, before: Sequence[str], last: str, names: Names) -> tuple[list[str], int]:
    if choices := getattr(option.type, "choices", None):
        return _beginning(map(str, choices), last), NO_FILES
    if kind := _OF_OPTIONS.get(before[-1]):
        return _beginning(names(kind, _namespace(before)), last), NO_FILES
    return [], FILES if option.metavar == "FILE" else NO_FILES


def _namespace(words: Sequence[str]) -> str:
    for flag, value in pairwise(words):
        if flag in ("-n", "--namespace"):
            return value
    given = (word.partition("=") for word in words)
    return next((value for flag, _, value in given if flag == "--namespace"), "")


def _beginning(found: Iterable[str], last: str) -> list[str]:
    return [one for one in found if one.startswith(last)]


def _names(kind: str, namespace: str) -> list[str]:
    """As the cluster has them; none where it does not tell in time."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_names_of(kind, namespace))


async def _names_of(kind: str, namespace: str) -> list[str]:
    """The names of a kind; none where the cluster does not tell them in time."""
    try:
        async with asyncio.timeout(SECONDS), connect() as client:
            return sorted({name async for name in _listed(client, kind, namespace)})
    except (ApiError, KubeconfigError, TimeoutError, OSError):
        return []


async def _listed(client: ApiClient, kind: str, namespace: str) -> AsyncIterator[str]:
    for resource in _KINDS[kind]:
        selection = resource.select((namespace or client.namespace) if kind == "pods" else "")
        for obj in (await client.list(selection)).items:
            for name in _names_in(kind, obj):
                yield name


def _names_in(kind: str, obj: JsonObject) -> Iterator[str]:
    devices = (obj.get("spec") or {}).get("devices") if kind == "devices" else None
    if devices is None:
        yield obj["metadata"]["name"]
    for device in devices or ():
        yield device["name"]


def main() -> int:
    """Print them."""
    found, directive = completions(sys.argv[1:], _names)
    sys.stdout.write("".join(f"{line}\n" for line in _lines(found, directive)))
    return 0


def _lines(found: Sequence[str], directive: int) -> Iterator[str]:
    yield from found
    yield f":{directive}"
