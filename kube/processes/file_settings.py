"""Settings in a YAML file, which `--config` names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from kube.processes.command_settings import options_of, setting_of


def _read_config(context: typer.Context, file: str) -> str:
    """Use the file's settings as defaults: options that are not eager are parsed later."""
    if not file:
        return file
    options = options_of(context.command)
    names = {setting_of(option): name for name, option in options.items() if name != "config"}
    found = settings_in(file)
    if unknown := sorted(found.keys() - names.keys()):
        raise typer.BadParameter(f"{file}: {unknown[0]}: there is no such setting; remove it.")
    values = {names[name]: value for name, value in found.items()}
    context.default_map = {**values, **(context.default_map or {})}
    return file


def settings_in(file: str) -> dict[str, Any]:
    """The settings of a file, each as it would be written on the command line.

    Raises:
        BadParameter: The file cannot be read, or is not a mapping of settings.
    """
    try:
        found = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise typer.BadParameter(f"{file}: this is not YAML: {error}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{file}: a mapping of settings is expected.")
    return {str(name): _text(value) for name, value in found.items()}


def _text(value: object) -> str:
    """A value as it would be written on the command line."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


Config = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        is_eager=True,
        callback=_read_config,
        help="YAML file with settings that neither flags nor the environment set.",
    ),
]
