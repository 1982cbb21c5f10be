"""Flags before the command: `kubectl moorage -n team claims` is `kubectl moorage claims -n team`.

kubectl accepts flags on both sides, as in `kubectl -n team get pods`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def command_first(command: Any, argv: Sequence[str]) -> list[str]:
    """The words with the command first; unchanged if there is no command among them."""
    if not argv or not argv[0].startswith("-"):
        return list(argv)  # To know all flags, all commands would have to be built.
    options = options_of(command)
    number = 0
    while number < len(argv) and argv[number].startswith("-"):
        known = options.get(_flag(argv[number]))
        if known is None:
            return list(argv)  # It is not a flag of a command, or it is one such as --help.
        number += 1 if known.is_flag or not _is_alone(argv[number]) else 2
    if number >= len(argv):
        return list(argv)
    return [argv[number], *argv[:number], *argv[number + 1 :]]


def options_of(command: Any) -> Mapping[str, Any]:
    """The flags of all commands."""
    return {
        flag: option
        for each in command.commands.values()
        for flag, option in options_of_command(each).items()
    }


def options_of_command(command: Any) -> Mapping[str, Any]:
    """The flags of one command."""
    options = (one for one in command.params if one.param_type_name == "option")
    return {flag: option for option in options for flag in option.opts}


def _flag(word: str) -> str:
    """`--namespace` of `--namespace=team`, and `-n` of `-nteam`."""
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _is_alone(word: str) -> bool:
    """Whether the value is the next word."""
    return "=" not in word if word.startswith("--") else len(word) == 2
