"""The objects in documents: those of lists, and Kueue's Configuration in its ConfigMap, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from scheduler_plugin.importing.foreign import NotValidError

JsonObject = Mapping[str, Any]

CONFIGURATION_KEY = "controller_manager_config.yaml"
"""The key of the ConfigMap in which Kueue's manager has its Configuration."""


def objects_of(documents: Iterable[object]) -> Iterator[JsonObject]:
    """Each object.

    Raises:
        NotValidError: A document is no object, or has no kind.
    """
    for document in documents:
        if document is not None:
            yield from _objects(document)


def _objects(document: object) -> Iterator[JsonObject]:
    if not isinstance(document, Mapping):
        raise NotValidError(["Each document must be an object."])
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        raise NotValidError(["Each object must have a kind and an apiVersion."])
    if kind.endswith("List") and isinstance(items := document.get("items"), list):
        yield from objects_of(
            _with_type(each, kind.removesuffix("List"), version) for each in items
        )
    elif kind == "ConfigMap" and CONFIGURATION_KEY in (data := document.get("data") or {}):
        yield from objects_of(_configurations(str(data[CONFIGURATION_KEY])))
    else:
        yield document


def _with_type(item: object, kind: str, version: str) -> object:
    """An item of a list; in a list of one kind the API server leaves the kind to the list."""
    if isinstance(item, Mapping) and kind:
        return {"apiVersion": version, "kind": kind, **item}
    return item


def _configurations(text: str) -> list[Any]:
    try:
        return list(yaml.safe_load_all(text))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise NotValidError([f"ConfigMap data[{CONFIGURATION_KEY}]: {error}"]) from None


def group_of(body: JsonObject) -> str:
    """The API group of an object."""
    return str(body["apiVersion"]).rpartition("/")[0]
