"""Whether the API server has the kinds of this version with all of their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from driver.models import ConfigurationModel, InstanceModel
from kube.models import Model
from kube.shapes.reading import JsonObject
from kube.words import some_of
from scheduler_plugin.checking.setups import (
    Finding,
    Level,
    Setup,
    Unread,
    named,
    unread,
)
from scheduler_plugin.models import QueueModel

PART = "definitions"
MODELS: dict[str, type[Model]] = {
    "configurations.akri.sh": ConfigurationModel,
    "instances.akri.sh": InstanceModel,
    "queues.moorage.dev": QueueModel,
}
APPLY = "helm show crds CHART | kubectl apply --server-side --force-conflicts -f -"
_OPEN = "x-kubernetes-preserve-unknown-fields"


def judge_definitions(setup: Setup) -> Iterator[Finding]:
    """One finding for each faulty definition, else one for all."""
    found = setup.definitions
    if isinstance(found, Unread):
        yield unread(PART, found)
        return
    flaws = [f for name in MODELS if (f := _flaw(name, named(found, name)))]
    yield from flaws
    if not flaws:
        yield Finding(Level.OK, PART, f"{', '.join(MODELS)} have all fields of this version.")


def _flaw(name: str, body: JsonObject | None) -> Finding | None:
    if body is None:
        return Finding(Level.ERROR, PART, f"The definition {name} does not exist.", APPLY)
    conditions = body.get("status", {}).get("conditions", ())
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        said = "; ".join(c.get("message", "") for c in conditions if c["status"] == "False")
        return Finding(Level.ERROR, PART, f"{name} is not served: {said or 'not yet'}.", APPLY)
    if missing := [
        path for path in dict.fromkeys(_paths_of(MODELS[name])) if not _has(_schema(body), path)
    ]:
        said = f"{name} has an older version: it drops {some_of(map('.'.join, missing), 1)}."
        return Finding(Level.ERROR, PART, said, APPLY)
    return None


def _schema(body: JsonObject) -> Any:
    """The schema of the storage version."""
    stored = next(v for v in body["spec"]["versions"] if v["storage"])
    return stored.get("schema", {}).get("openAPIV3Schema", {})


def _paths_of(model: type[Model]) -> Iterator[tuple[str, ...]]:
    """The path of each field below spec and status."""
    schema = model.model_json_schema()
    for name in schema["properties"].keys() & {"spec", "status"}:
        yield from _paths(schema["properties"][name], schema["$defs"], (name,))


def _paths(schema: Any, definitions: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    for inside in schema.get("anyOf", ()):
        yield from _paths(inside, definitions, path)
    if "$ref" in schema:
        yield from _paths(definitions[schema["$ref"].rpartition("/")[2]], definitions, path)
    if isinstance(items := schema.get("items"), dict):
        yield from _paths(items, definitions, (*path, "[]"))
    for name, field in schema.get("properties", {}).items():
        yield from _paths(field, definitions, (*path, name))


def _has(schema: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if schema.get(_OPEN):
            return True
        schema = schema.get("items") if step == "[]" else schema.get("properties", {}).get(step)
        if schema is None:
            return False
    return True
