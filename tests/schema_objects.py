"""Objects that a structural schema admits, and such as differ from one of them in one place.

What a schema's rules in CEL say is not looked at, but for what a text must look like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.crds import CRDS

Schema = Mapping[str, Any]
Path = tuple[int | str, ...]

TIME = "2026-01-02T03:04:05Z"
WORDS = st.text(alphabet="abz09-._/ Ä", max_size=8)
_MATCHES = re.compile(r"self\.matches\('([^']*)'\)")

QUANTITIES = ("-1", "0", "3", "40Gi", "1500m", "+2.5e3")

GARBAGE: tuple[Any, ...] = (
    "", "a", "A!", "-1", "5", "-4Gi", "3K", "9999h", "x" * 400, -2, -1, 0, 1, 7.5, 10**12, True,
    False, [], ["a"], [7], {}, {"a": 1},
)  # fmt: skip
"""What is put where something else belongs; null is left out, since it means absent."""


def schema_of(name: str) -> Schema:
    """The schema of `spec` in a definition of `deploy/crds`."""
    definition = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def admitted(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that the schema admits."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "x-kubernetes-int-or-string" in schema:
        return st.one_of(st.integers(-1, 2**40), st.sampled_from(QUANTITIES))
    match schema["type"]:
        case "string":
            return _texts(schema)
        case "integer":
            return st.integers(schema.get("minimum", -10), schema.get("maximum", 2**40))
        case "boolean":
            return st.booleans()
        case "array":
            return _lists(schema)
        case _:
            return _objects(schema)


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return st.just(TIME)
    # Python's $ matches before a last line break, too.
    pattern = pattern_of(schema)
    found = st.from_regex(pattern.replace("$", r"\Z")) if pattern else WORDS
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", 100)
    return found.filter(lambda text: text.isascii() and shortest <= len(text) <= longest)


def pattern_of(schema: Schema) -> str:
    """What a text must look like, as `pattern` or a rule with words for it says; "" for any."""
    rules = (entry["rule"] for entry in schema.get("x-kubernetes-validations", ()))
    found = (_MATCHES.fullmatch(rule) for rule in rules)
    return schema.get("pattern") or next((match[1] for match in found if match), "")


def _lists(schema: Schema) -> st.SearchStrategy[list[Any]]:
    keys = schema.get("x-kubernetes-list-map-keys", ())

    def identity(item: Any) -> Any:
        return tuple(item.get(key) for key in keys) if keys else item

    is_unique = schema.get("x-kubernetes-list-type") in ("map", "set")
    unique_by = identity if is_unique else None
    return st.lists(admitted(schema["items"]), max_size=3, unique_by=unique_by)


def _objects(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    if "additionalProperties" in schema:
        return st.dictionaries(WORDS, admitted(schema["additionalProperties"]), max_size=3)
    alternatives = schema.get("oneOf", ({"required": []},))
    return st.sampled_from(alternatives).flatmap(lambda one: _fields(schema, one["required"]))


def _fields(schema: Schema, chosen: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    others = {name for one in schema.get("oneOf", ()) for name in one["required"]} - set(chosen)
    required = {*schema.get("required", ()), *chosen}
    fields = {n: admitted(f) for n, f in schema.get("properties", {}).items() if n not in others}
    return st.fixed_dictionaries(
        {name: field for name, field in fields.items() if name in required},
        optional={name: field for name, field in fields.items() if name not in required},
    )


@st.composite
def nearly_admitted(draw: st.DrawFn, schema: Schema) -> Any:
    """A value that the schema admits, but for one place where something else stands."""
    found = deepcopy(draw(admitted(schema)))
    places = list(_places(found))
    if not places:
        return found
    *path, last = draw(st.sampled_from(places))
    inside = found
    for step in path:
        inside = inside[step]
    inside[last] = draw(st.sampled_from(GARBAGE))
    return found


def _places(value: Any, path: Path = ()) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in items:
        yield (*path, step)
        if isinstance(item, dict | list):
            yield from _places(item, (*path, step))
