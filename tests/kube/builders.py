"""Objects as the API server sends them, with defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kube.objects import JsonObject


@dataclass(frozen=True, slots=True)
class View:
    """What the tests' stores keep of an object."""

    name: str
    data: str


def an_object(
    name: str = "a", version: int = 1, data: str = "", *, uid: str = "", namespace: str = "ns"
) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": data}}


def a_view(name: str = "a", data: str = "") -> View:
    return View(name, data)


def project(obj: JsonObject) -> View | None:
    """Keep the data; "hidden" is of no interest, "odd" cannot be read."""
    data = obj["data"]["v"]
    if data == "odd":
        raise ValueError("odd object")
    return None if data == "hidden" else View(obj["metadata"]["name"], data)
