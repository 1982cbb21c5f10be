"""Permissions: Roles that let drivers read exactly the objects that Configurations name.

    Configurations ──► a Role and a RoleBinding for each, in each namespace of a named object

The driver is installed without permission to read any Secret or ConfigMap. A Role names the
objects, and allows the driver to get, list and watch each of them by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import AKRI_GROUP, DRIVER_NAME, Problem, ValueReference
from driver.handlers.properties.discovery_properties import discovery_properties, property_problems

JsonObject = Mapping[str, Any]

RESOURCES = {"Secret": "secrets", "ConfigMap": "configmaps"}
VERBS = ("get", "list", "watch")
_RBAC = "rbac.authorization.k8s.io"


class InputError(Exception):
    """Raised if the input is invalid; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Account:
    """The ServiceAccount of the driver on nodes."""

    namespace: str
    name: str


def configurations_in(documents: Iterable[object]) -> Iterator[JsonObject]:
    """The Configurations among objects of any kind, also those in Lists."""
    for document in documents:
        if not isinstance(document, Mapping):
            continue
        kind, version = document.get("kind"), str(document.get("apiVersion"))
        if str(kind).endswith("List") and isinstance(items := document.get("items"), list):
            yield from configurations_in(items)
        elif kind == "Configuration" and version.startswith(f"{AKRI_GROUP}/"):
            yield document


def permissions(body: JsonObject, account: Account) -> list[JsonObject]:
    """The Roles and RoleBindings that one Configuration needs; none if it names no object.

    Raises:
        InputError: The Configuration does not match its definition, or its properties are invalid.
    """
    # Imported here: a node's driver imports this module and must not load pydantic, 11 MiB.
    from driver.models import configuration_problems

    if flaws := configuration_problems(body):
        raise InputError(_sentence(body, flaws))
    handler = (body.get("spec") or {}).get("discoveryHandler") or {}
    given = handler.get("discoveryProperties")
    if flaws := tuple(property_problems(given)):
        raise InputError(_sentence(body, flaws))
    name, values = body["metadata"]["name"], discovery_properties(given).values()
    references = [value for value in values if isinstance(value, ValueReference)]
    namespaces = sorted({reference.namespace for reference in references})
    return [
        body
        for namespace in namespaces
        for body in (
            _role(name, namespace, [r for r in references if r.namespace == namespace]),
            _binding(name, namespace, account),
        )
    ]


def _role(configuration: str, namespace: str, references: Iterable[ValueReference]) -> JsonObject:
    names: dict[str, set[str]] = {}
    for reference in references:
        names.setdefault(RESOURCES[reference.kind], set()).add(reference.name)
    rules = [
        {
            "apiGroups": [""],
            "resources": [resource],
            "resourceNames": sorted(names[resource]),
            "verbs": list(VERBS),
        }
        for resource in sorted(names)
    ]
    return {**_object("Role", configuration, namespace), "rules": rules}


def _binding(configuration: str, namespace: str, account: Account) -> JsonObject:
    role = {"apiGroup": _RBAC, "kind": "Role", "name": _name(configuration)}
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    body = _object("RoleBinding", configuration, namespace)
    return {**body, "roleRef": role, "subjects": [subject]}


def _object(kind: str, configuration: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {
            "name": _name(configuration),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "moorage"},
        },
    }


def _name(configuration: str) -> str:
    """Name of the Role. Each Configuration has its own, so that deleting one affects no other."""
    return f"{DRIVER_NAME}:properties:{configuration}"


def _sentence(body: JsonObject, flaws: Iterable[Problem]) -> str:
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"Configuration {name or 'without a name'}: {' '.join(map(str, flaws))}"
