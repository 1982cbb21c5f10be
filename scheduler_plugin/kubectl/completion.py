"""`kubectl_complete-moorage`: kubectl runs it when a user presses Tab after `kubectl moorage`.

kubectl passes the words so far; the last word is the one to complete. It reads one completion a
line, with its meaning after a tab, and at the end a number: 4 means "no names of files".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from kube.command_settings import command_of
from scheduler_plugin.kubectl.commands import app
from scheduler_plugin.kubectl.flag_order import command_first, options_of, options_of_command

NO_FILES, FILES = 4, 0

Names = Callable[[str, str], Iterable[str]]
"""The names of a kind in a namespace; kinds are those of `completed_names`."""

_POSITIONAL = {
    "charge": "queues",
    "why": "pods",
    **{view: view for view in ("queues", "claims", "devices")},
}
_OF_OPTIONS = {
    "--namespace": "namespaces",
    "-n": "namespaces",
    "--release-namespace": "namespaces",
    "--without-device": "devices",
}


def completions(argv: Sequence[str], names: Names) -> tuple[list[str], int]:
    """The completions of the last word, and whether it may be a file."""
    command = command_of(app)
    *typed, last = argv or [""]
    before = command_first(command, typed)
    chosen = command.commands.get(before[0]) if before else None
    if before and chosen is None and not before[0].startswith("-"):
        return [], NO_FILES
    options = options_of(command) if chosen is None else options_of_command(chosen)
    if before and before[-1] in options and not options[before[-1]].is_flag:
        return _value(options[before[-1]], before, last, names)
    if last.startswith("-"):
        shown = [(flag, one) for flag, one in options.items() if not one.hidden]
        return _beginning((f"{flag}\t{one.help or ''}" for flag, one in shown), last), NO_FILES
    if chosen is None:
        found = [f"{name}\t{each.help}" for name, each in command.commands.items()]
        return _beginning(found, last), NO_FILES
    if before[0] in ("snapshot", "import"):
        return [], FILES
    kind = _POSITIONAL.get(before[0])
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
    """Names from the cluster; the client is imported only for these."""
    from scheduler_plugin.kubectl.completed_names import completed_names

    return completed_names(kind, namespace)


def main() -> int:
    """Print the completions of the words in `sys.argv`."""
    found, directive = completions(sys.argv[1:], _names)
    sys.stdout.write("".join(f"{line}\n" for line in _lines(found, directive)))
    return 0


def _lines(found: Sequence[str], directive: int) -> Iterator[str]:
    yield from found
    yield f":{directive}"
