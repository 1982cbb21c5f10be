"""Device configs: settings of DeviceClasses and claims for the allocated devices.

    opaque parameters ──read──► DeviceConfig | problems      DeviceConfigs ──merged──► DeviceConfig

The API server does not validate opaque parameters. The webhook does, by
`models.DeviceConfigModel`, but it may be down. So nodes validate them again, here, with the same
sentences and without pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import DRIVER_NAME, Problem
from driver.environment_rules import built_in_refusal

API_VERSION = f"{DRIVER_NAME}/v1alpha1"
KIND = "DeviceConfig"

HIGHEST_ID = 2**32 - 2
"""Highest id of a user or a group; the next one means none."""

NAME = re.compile(r"^[_A-Za-z][_A-Za-z0-9]*$")
PERMISSIONS = re.compile(r"^(rw?m?|wm?|m)$")
PERMISSION_LETTERS = frozenset("rwm")
"""Read, write and mknod, as in the device cgroup."""

MODE = re.compile(r"^0[0-7]{3}$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_UNUSABLE = re.compile(r"[\0\ud800-\udfff]")

Check = Callable[[Any], str]
"""Returns the problem of a value of the right type, as a sentence; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """Settings for an allocated device; a setting that is not given is None or empty.

    Attributes:
        env: Environment beside the device's own, sorted by name.
        permissions: Any of `r`, `w` and `m`, in this order; "" for the handler's permissions.
        mode: Mode of device nodes in the container.
        uid: Owner of device nodes in the container.
        gid: Group of device nodes in the container.
        certificates: Path in the container of the folder with the device's certificates.
    """

    env: tuple[tuple[str, str], ...] = ()
    permissions: str = ""
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    certificates: str = ""


NOTHING_ASKED = DeviceConfig()


def merged(configs: Iterable[DeviceConfig]) -> DeviceConfig:
    """Merge by field, and `env` by variable; a later setting overrides an earlier one."""
    env: dict[str, str] = {}
    said: dict[str, Any] = {}
    for config in configs:
        env.update(config.env)
        for name in ("permissions", "certificates"):
            said[name] = getattr(config, name) or said.get(name, "")
        for name in ("mode", "uid", "gid"):
            value = getattr(config, name)
            said[name] = said.get(name) if value is None else value
    return DeviceConfig(env=tuple(sorted(env.items())), **said)


def read(parameters: object) -> DeviceConfig | tuple[Problem, ...]:
    """Parse opaque parameters for our driver; returns all problems if there are any.

    Paths of problems are relative to the parameters.
    """
    if not isinstance(parameters, dict):
        sentence = "Input should be a valid dictionary or instance of DeviceConfigModel."
        return (Problem("", sentence),)
    found = [
        problem
        for name, field_problems in _FIELDS.items()
        for problem in field_problems(name, parameters)
    ]
    unknown = parameters.keys() - _FIELDS.keys()
    found += (
        Problem(name, "Extra inputs are not permitted.") for name in parameters if name in unknown
    )
    return tuple(found) or _config(parameters)


def _config(fields: Mapping[str, Any]) -> DeviceConfig:
    mode = fields.get("mode")
    return DeviceConfig(
        env=tuple(sorted((fields.get("env") or {}).items())),
        permissions=fields.get("permissions") or "",
        mode=None if mode is None else int(mode, 8),
        uid=fields.get("uid"),
        gid=fields.get("gid"),
        certificates=fields.get("certificates") or "",
    )


def name_problem(name: str) -> str:
    """The problem of a variable's name."""
    if not NAME.fullmatch(name):
        return "A variable's name has letters, digits and _, and does not begin with a digit."
    why = built_in_refusal(name)
    return f"{why[0].upper()}{why[1:]}." if why else ""


def value_problem(value: str) -> str:
    """The problem of a variable's value."""
    return "A variable's value must not have a NUL byte." if _UNUSABLE.search(value) else ""


def permissions_problem(text: str) -> str:
    """The problem of permissions of device nodes."""
    return "" if PERMISSIONS.fullmatch(text) else "It must be some of rwm, such as r or rw."


def mode_problem(text: str) -> str:
    """The problem of a mode of device nodes."""
    return "" if MODE.fullmatch(text) else "It must be a mode in four octal digits, such as 0660."


def id_problem(number: int) -> str:
    """The problem of the id of a user or a group."""
    return "" if 0 <= number <= HIGHEST_ID else f"It must be a number from 0 to {HIGHEST_ID}."


def folder_problem(path: str) -> str:
    """The problem of the path of a folder in containers."""
    parts = path.split("/")
    is_plain = len(parts) > 1 and not parts[0] and {"", ".", ".."}.isdisjoint(parts[1:])
    if not is_plain or _CONTROL.search(path):
        return "It must be an absolute path of a folder, such as /etc/camera."
    return ""


_FieldProblems = Callable[[str, Mapping[str, Any]], list[Problem]]


def _is(word: str) -> _FieldProblems:
    def problems(name: str, fields: Mapping[str, Any]) -> list[Problem]:
        if name not in fields:
            return [Problem(name, "Field required.")]
        return [] if fields[name] == word else [Problem(name, f"Input should be {word!r}.")]

    return problems


def _text(check: Check) -> _FieldProblems:
    def problems(name: str, fields: Mapping[str, Any]) -> list[Problem]:
        value = fields.get(name)
        return [] if value is None else _text_problems(name, value, check)

    return problems


def _text_problems(path: str, value: object, check: Check) -> list[Problem]:
    why = check(value) if isinstance(value, str) else "Input should be a valid string."
    return [Problem(path, why)] if why else []


def _number(name: str, fields: Mapping[str, Any]) -> list[Problem]:
    value = fields.get(name)
    if value is None:
        return []
    is_number = isinstance(value, int) and not isinstance(value, bool)
    why = id_problem(value) if is_number else "Input should be a valid integer."
    return [Problem(name, why)] if why else []


def _env(name: str, fields: Mapping[str, Any]) -> list[Problem]:
    env = fields.get(name)
    if env is None:
        return []
    if not isinstance(env, dict):
        return [Problem(name, "Input should be a valid dictionary.")]
    return [
        problem
        for key, value in env.items()
        for part, check in ((key, name_problem), (value, value_problem))
        for problem in _text_problems(f"{name}[{key}]", part, check)
    ]


_FIELDS: Mapping[str, _FieldProblems] = {
    "apiVersion": _is(API_VERSION),
    "kind": _is(KIND),
    "env": _env,
    "permissions": _text(permissions_problem),
    "mode": _text(mode_problem),
    "uid": _number,
    "gid": _number,
    "certificates": _text(folder_problem),
}
