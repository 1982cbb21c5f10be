"""Fields of foreign objects, read with their types checked.

An absent field and null mean the same, as in the Kubernetes API. A field of another type than
the API gives it makes the whole object `Unreadable`: a value that names the field.

Of what comes by the thousand, a shape names the fields that are read, and `read_as` reads them at
once: a call for each field would take several times as long. Whatever else an object has is not
looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import wraps
from sys import intern
from typing import Any, ParamSpec, TypeAlias, TypeVar

import msgspec

from driver.api import Problem, parse_duration

JsonObject: TypeAlias = Mapping[str, Any]

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be what it says it is, and the first field that shows it."""

    problem: Problem

    def __str__(self) -> str:
        return str(self.problem)


class _WrongTypeError(Exception):
    """Raised when a field has another type than the API gives it; never leaves this package."""

    def __init__(self, path: str, value: object, wanted: str) -> None:
        super().__init__(path)
        self.problem = Problem(path, f"{shown(value)} is not {wanted}.")


def shown(value: object) -> str:
    """A value for a sentence; what is long is cut."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def readable(parse: Callable[P, T]) -> Callable[P, T | Unreadable]:
    """Make a parser answer with `Unreadable` where a field has a wrong type."""

    @wraps(parse)
    def parse_or_say(*args: P.args, **options: P.kwargs) -> T | Unreadable:
        try:
            return parse(*args, **options)
        except _WrongTypeError as error:
            return Unreadable(error.problem)

    return parse_or_say


_SAID = re.compile(
    r"(?:Expected `(?P<wanted>\w+)|Object missing required field `(?P<missing>\w+)`)"
    r".*?(?: - at `(?P<path>.*)`)?"
)
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<place>\d+|\.\.\.)\]")
_WANTED = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
    "str": (str, "a string"),
}


def read_as(shape: type[T], obj: object) -> T:
    """The fields that a shape names, if they are not read yet; for use in what is `readable`."""
    if type(obj) is shape:
        return obj
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error), obj) from None


def _wrong_type(message: str, obj: object) -> _WrongTypeError:
    """The same with our path and our words."""
    said = _SAID.fullmatch(message)
    if said is None:
        return _WrongTypeError("", message, "readable")
    if said["missing"]:
        path, _ = _found(f"{said['path'] or '$'}.{said['missing']}", obj, str)
        return _WrongTypeError(path, None, "a string that must be set")
    kind, wanted = _WANTED[said["wanted"]]
    path, value = _found(said["path"] or "$", obj, kind)
    return _WrongTypeError(path, value, wanted if value != "" else f"{wanted} that must be set")


def _found(path: str, obj: Any, wanted: type) -> tuple[str, object]:
    """Where a step of msgspec's path leads; of a map it does not say to which key."""
    where = ""
    for step in _STEP.finditer(path.removeprefix("$")):
        name = step["field"] or step["place"]
        if name == "...":
            name = next(key for key, value in obj.items() if not isinstance(value, wanted))
        obj = obj[int(name)] if isinstance(obj, list) else obj.get(name)
        where += f".{name}" if step["field"] else f"[{name}]"
    return where.removeprefix("."), obj


def an_object(value: object, path: str) -> JsonObject:
    if value is None:
        return {}
    # Nearly all are dicts, and asking an abstract class takes ten times as long.
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise _WrongTypeError(path, value, "an object")


def a_list(value: object, path: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise _WrongTypeError(path, value, "a list")
    return value


def objects(value: object, path: str) -> Iterator[tuple[str, JsonObject]]:
    """The objects of a list, each with its path."""
    for number, item in enumerate(a_list(value, path)):
        where = f"{path}[{number}]"
        yield where, an_object(item, where)


def text(value: object, path: str) -> str:
    """A string; "" where there is none. Many objects share few strings, so each is kept once."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _WrongTypeError(path, value, "a string")
    return intern(value)


def own_text(value: object, path: str) -> str:
    """A string that belongs to one object, such as its UID; must be there."""
    if not isinstance(value, str) or not value:
        raise _WrongTypeError(path, value, "a string that must be set")
    return value


def number(value: object, path: str, *, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise _WrongTypeError(path, value, "a whole number")
    return value


def word(value: object, path: str, words: type[E]) -> E | None:
    """One of some words; None where there is none."""
    if value is None:
        return None
    if not isinstance(value, str) or value not in list(words):
        raise _WrongTypeError(path, value, f"one of {', '.join(words)}")
    return words(value)


def duration(value: object, path: str) -> timedelta | None:
    """A duration such as 5m; None where there is none."""
    if value is None:
        return None
    found = parse_duration(value) if isinstance(value, str) else None
    if found is None:
        raise _WrongTypeError(path, value, "a duration such as 30s or 5m")
    return found


def flag(value: object, path: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _WrongTypeError(path, value, "true or false")
    return value


def read_quantity(value: object, path: str, read: Callable[[object], int | None]) -> int:
    found = read(value)
    if found is None:
        raise _WrongTypeError(path, value, "a quantity of at least 0")
    return found


def texts(value: object, path: str) -> Mapping[str, str]:
    """A map of strings, such as labels."""
    found = an_object(value, path)
    for name, item in found.items():
        if not isinstance(item, str):
            raise _WrongTypeError(f"{path}[{name}]", item, "a string")
    return found
