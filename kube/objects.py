"""What every Kubernetes object has: its key, its UID and its resourceVersion."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

# JSON as the server sent it. Only the outermost code uses it: projections turn it into values.
JsonObject: TypeAlias = Mapping[str, Any]


class Shaped(Protocol):
    """An object that was read as a msgspec shape: only the fields that the shape names.

    Its metadata has `name`, `namespace`, `uid` and `resource_version`.
    """

    @property
    def metadata(self) -> Any: ...


StoredObject: TypeAlias = JsonObject | Shaped


class MalformedObjectError(ValueError):
    """Raised when an object lacks the metadata that every stored object has."""


class ObjectKey(NamedTuple):
    """Namespace and name of an object of one resource; the namespace is "" if cluster-scoped."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object it is (`key`, `uid`) and which version of it."""

    key: ObjectKey
    uid: str
    resource_version: int


def identity_of(obj: StoredObject) -> Identity:
    try:
        namespace, name, uid, version = _identity(obj)
        # Thousands of objects share few namespaces: one string for each namespace.
        return Identity(ObjectKey(intern(namespace), name), uid, parse_resource_version(version))
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedObjectError(f"the object lacks metadata: {error!r}") from error


def _identity(obj: StoredObject) -> tuple[str, str, str, str]:
    if isinstance(obj, dict):
        metadata = obj["metadata"]
        found = metadata["name"], metadata["uid"], metadata["resourceVersion"]
        return metadata.get("namespace", ""), *found
    shaped = cast(Shaped, obj).metadata
    if not (shaped.name and shaped.uid):
        raise KeyError("name, uid")
    return shaped.namespace or "", shaped.name, shaped.uid, shaped.resource_version


def parse_resource_version(text: str) -> int:
    """Return a resourceVersion as a number, which orders the versions of one resource.

    KEP-5504 (Kubernetes 1.35) guarantees this; every etcd-backed server has always done so.
    Versions of different resources must not be compared: they may live in different etcds.
    """
    try:
        return int(text)
    except (TypeError, ValueError) as error:
        raise MalformedObjectError(f"resourceVersion {text!r} is not a number") from error
