"""Generate the schemas of `deploy/crds` from the models, or check that they are what it generates.

    python -m tests.crds --write     anew into the files
    python -m tests.crds --check     compare, and change nothing

What stands above a schema, names, columns and subresources, is written by hand and stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from driver.models import ConfigurationModel, InstanceModel
from kube.models import Model
from scheduler_plugin.models import QueueModel
from tests.generated import run

CRDS = Path(__file__).resolve().parent.parent / "deploy" / "crds"
MODELS: Mapping[str, type[Model]] = {
    "configurations.akri.sh": ConfigurationModel,
    "instances.akri.sh": InstanceModel,
    "queues.moorage.dev": QueueModel,
}
BEGINNING = "        openAPIV3Schema:\n"
"""The line below which all is generated."""

_FIRST = ("type", "format", "nullable", "default", "description", "required")
_LAST = ("properties", "items", "additionalProperties")

Schema = dict[str, Any]


def structural_schema(model: type[Model]) -> Schema:
    """A model's schema as `openAPIV3Schema` may have it."""
    found = model.model_json_schema()
    schema = _structural(found, found.get("$defs", {}))
    schema["properties"].pop("metadata", None)  # The API server's own.
    required = [name for name in schema.pop("required") if name != "metadata"]
    return _ordered(schema | ({"required": required} if required else {}))


def _structural(schema: Schema, definitions: Schema) -> Schema:
    """A schema without references, titles, and what only says that null is as good as nothing."""
    while "$ref" in schema or "anyOf" in schema:
        schema = _resolved(schema, definitions)
    found = {name: value for name, value in schema.items() if name not in ("title", "$defs")}
    if "description" in found:
        found["description"] = " ".join(found["description"].split())
    if isinstance(found.get("additionalProperties"), bool):
        # Unknown fields are pruned, or x-kubernetes-preserve-unknown-fields says otherwise.
        del found["additionalProperties"]
    for keyword in found.keys() & {"items", "additionalProperties"}:
        found[keyword] = _structural(found[keyword], definitions)
    if "properties" in found:
        fields = found["properties"].items()
        found["properties"] = {name: _structural(field, definitions) for name, field in fields}
    return _ordered(found)


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema that is referred to, or that which is not null; what is said here comes first."""
    inside: Schema = next(
        choice for choice in schema.get("anyOf", [schema]) if choice != {"type": "null"}
    )
    if "$ref" in schema:
        inside = definitions[schema["$ref"].rpartition("/")[2]]
    said = {name: value for name, value in schema.items() if name not in ("$ref", "anyOf")}
    return inside | {name: v for name, v in said.items() if (name, v) != ("default", None)}


def _ordered(schema: Schema) -> Schema:
    def place(name: str) -> int:
        return _FIRST.index(name) if name in _FIRST else 99 if name in _LAST else 50

    return {name: schema[name] for name in sorted(schema, key=place)}


class _Plain(yaml.SafeDumper):
    """Writes what occurs twice twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def generated(file: Path) -> str:
    """What the file should hold."""
    by_hand, beginning, _ = file.read_text().partition(BEGINNING)
    schema = structural_schema(MODELS[file.stem])
    text = yaml.dump(schema, Dumper=_Plain, sort_keys=False, width=88)
    return by_hand + beginning + indent(text, " " * 10)


def stale(folder: Path) -> Iterator[str]:
    """What is wrong with the definitions in the folder."""
    for name in MODELS:
        file = folder / f"{name}.yaml"
        if file.read_text() != generated(file):
            yield f"differs from its model: {file.name}"


def write() -> None:
    for name in MODELS:
        file = CRDS / f"{name}.yaml"
        file.write_text(generated(file))


def main() -> str | None:
    """What to complain about, or None."""
    problems = run("tests.crds", __doc__, write, lambda: stale(CRDS))
    return "\n".join([*problems, "Run `make crds`."]) if problems else None


if __name__ == "__main__":
    sys.exit(main())
