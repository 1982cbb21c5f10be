"""Reads the YAML that is deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CRDS = DEPLOY / "crds"
MANIFESTS = DEPLOY / "manifests"
DASHBOARD = DEPLOY / "dashboard"
EXAMPLES = DEPLOY / "examples"

JsonObject = Mapping[str, Any]


def documents_in(folder: Path) -> dict[Path, list[Any]]:
    return {
        path: list(yaml.safe_load_all(path.read_text())) for path in sorted(folder.glob("*.yaml"))
    }


def objects_of_kind(kind: str) -> list[Any]:
    found = (doc for documents in documents_in(MANIFESTS).values() for doc in documents)
    return [document for document in found if document["kind"] == kind]


def schema_nodes(schema: JsonObject, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Every schema of a structural schema, with the path of the field that it is about."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from schema_nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            yield from schema_nodes(schema[keyword], f"{path}[]")
