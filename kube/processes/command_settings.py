"""Settings, with one name on the command line, in the environment and in a file.

    moorage-driver node --rediscovery-interval 5s      a flag wins
    MOORAGE_REDISCOVERY_INTERVAL=5s                    over the environment,
    rediscovery-interval: 5s                           which wins over the file of --config

A command is a Typer function; it returns the settings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperGroup, TyperOption
from typer.models import OptionInfo

from kube.processes.built_commands import command_of

T = TypeVar("T")


LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], typer.Option()]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option(help="Lines of text, or one JSON object a line."),
]
TracingEndpoint = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="OTLP endpoint of gRPC for traces, such as http://collector:4317; needs the packages"
        " of moorage[tracing].",
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG",
        metavar="FILE",
        help="Kubeconfig file; default: the ServiceAccount of the pod.",
    ),
]


EPILOG = (
    "Each flag may be given as MOORAGE_<FLAG> in the environment, too, or in a YAML file that"
    " --config names, without its dashes: rediscovery-interval is MOORAGE_REDISCOVERY_INTERVAL."
)


def commands(name: str, help_: str, epilog: str = EPILOG) -> typer.Typer:
    """An empty Typer application, to which commands are added."""
    return typer.Typer(
        name=name,
        help=help_,
        epilog=epilog,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=True,
    )


def parsed(
    parse: Callable[[str], T], *, metavar: str, help_: str = "", shown: str = "", **more: Any
) -> OptionInfo:
    """An option whose text is parsed.

    Args:
        parse: Parses the text; raises ValueError with the reason.
        metavar: The placeholder of the text in the help.
        help_: The help text.
        shown: The default as a user would write it.
        more: See `typer.Option`.
    """

    def convert(value: str | T) -> T:
        if not isinstance(value, str):
            return value  # a default
        try:
            return parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    option: OptionInfo = typer.Option(
        parser=convert, metavar=metavar, help=help_, show_default=shown or False, **more
    )
    return option


def not_empty(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: The text is empty.
    """
    if not text:
        raise ValueError("must not be empty")
    return text


def refuse(message: str) -> typer.BadParameter:
    """The error that a command raises when its flags contradict each other."""
    return typer.BadParameter(message)


def settings_of(app: typer.Typer, argv: Sequence[str], environ: Mapping[str, str]) -> Any:
    """The settings of the command that the arguments name.

    Raises:
        SystemExit: After `--help`, or with a message if the arguments are invalid.
    """
    command = command_of(app)
    try:
        found = command.main(
            list(argv),
            prog_name=app.info.name,
            standalone_mode=False,
            default_map=_of_environment(command, environ, argv),
        )
    except typer.TyperException as error:
        error.show()  # type: ignore[attr-defined]  # all that parsing raises are of its subclass
        sys.exit(error.exit_code)
    return sys.exit(found) if isinstance(found, int) else found


def _of_environment(
    command: Any, environ: Mapping[str, str], argv: Sequence[str] = ()
) -> dict[str, Any]:
    """Defaults of a command; for a group, those of its commands that the arguments name."""
    if isinstance(command, TyperGroup):
        named = command.commands.keys() & argv
        return {name: _of_environment(command.commands[name], environ) for name in named}
    found = {name: _of_variables(option, environ) for name, option in options_of(command).items()}
    return {name: value for name, value in found.items() if value}


def options_of(command: Any) -> dict[str, TyperOption]:
    """The options of a command, by parameter name."""
    return {p.name or "": p for p in command.params if isinstance(p, TyperOption)}


def _of_variables(option: TyperOption, environ: Mapping[str, str]) -> str | None:
    own = option.envvar or ()
    variable = f"MOORAGE_{setting_of(option).upper().replace('-', '_')}"
    names = (*((own,) if isinstance(own, str) else own), variable)
    return next((value for name in names if (value := environ.get(name))), None)


def setting_of(option: TyperOption) -> str:
    """The name of a setting in files: its longest flag without dashes."""
    return max(option.opts, key=len).lstrip("-")
