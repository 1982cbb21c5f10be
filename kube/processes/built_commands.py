"""The commands of a program, each built on first use: a call runs one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from typing import Any

import typer
from typer.main import get_command, get_command_from_info, get_command_name, get_group
from typer.models import CommandInfo


@cache
def command_of(app: typer.Typer) -> Any:
    """The command of a program with one command, or the group of its commands.

    All commands must be registered before.
    """
    if len(app.registered_commands) < 2:
        return get_command(app)
    bare = copy(app)
    bare.registered_commands = []
    group: Any = get_group(bare)
    group.commands = _Commands(app)
    return group


class _Commands(Mapping[str, Any]):
    """The commands of a group by name, in the order of the help."""

    def __init__(self, app: typer.Typer) -> None:
        self._app = app
        self._infos = {_name_of(info): info for info in app.registered_commands}
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = get_command_from_info(
                self._infos[name],
                pretty_exceptions_short=self._app.pretty_exceptions_short,
                rich_markup_mode=self._app.rich_markup_mode,
            )
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, name: object) -> bool:
        return name in self._infos


def _name_of(info: CommandInfo) -> str:
    """The name that Typer gives the command."""
    assert info.callback
    return info.name or get_command_name(info.callback.__name__)
