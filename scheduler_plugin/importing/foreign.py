"""Objects of other projects as models: lenient, and with a memory of the fields that none names.

A field that a model does not name is kept beside it, and `unread` lists it with its path. So a
field of a later version is reported, and never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from kube.models import OBJECT_NAME_OR_NONE, LabelSelector, Model, flaw, flaws
from kube.shapes.quantities import thousandths
from scheduler_plugin.importing.findings import Finding, Reasons

UNLIMITED = -1

METADATA = "Labels and annotations are not taken over: tools read them as their own."

_BY_TOOLS = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations that say nothing about the object."""


class NotValidError(Exception):
    """Objects that cannot be read.

    Attributes:
        problems: A sentence for each, with the object and the path of the field.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class Foreign(Model):
    """A part of an object, with the fields that it does not name."""

    model_config = ConfigDict(extra="allow")


class ForeignSelector(LabelSelector):
    """A label selector, with the fields that it does not name."""

    model_config = ConfigDict(extra="allow")


ForeignName = Annotated[str, Field(max_length=253, pattern=OBJECT_NAME_OR_NONE)]


class ForeignMetadata(Model):
    """What a user writes of an object's metadata; the API server writes the rest."""

    name: ForeignName = ""
    namespace: ForeignName = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ForeignObject(Foreign):
    """An object. Its status is what another program wrote, and no input."""

    api_version: str
    kind: str
    metadata: ForeignMetadata = ForeignMetadata()
    status: Any = None

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def about(self) -> str:
        """Kind, namespace and name."""
        parts = (self.kind, self.metadata.namespace, self.metadata.name)
        return "/".join(filter(None, parts))


ForeignType = TypeVar("ForeignType", bound=ForeignObject)


def parsed(model: type[ForeignType], body: Mapping[str, Any]) -> ForeignType:
    """An object as its model.

    Raises:
        NotValidError: A field has another type than the kind's definition says.
    """
    if problems := tuple(flaws(model, body)):
        about = shown_name(body)
        raise NotValidError(f"{about} {path}: {sentence}" for path, sentence in problems)
    return model.model_validate(body)


def shown_name(body: Mapping[str, Any]) -> str:
    """Kind and name of an object that may not be valid."""
    metadata = body.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    parts = (body.get("kind"), known.get("namespace"), known.get("name"))
    return "/".join(str(part) for part in parts if part)


def unread_findings(found: ForeignObject, reasons: Reasons) -> Iterator[Finding]:
    """A finding for each field that no model names, and for labels and annotations."""
    for part in ("labels", "annotations"):
        if set(getattr(found.metadata, part) or ()) - _BY_TOOLS:
            yield Finding(found.about, (f"metadata.{part}",), METADATA)
    yield from reasons.findings(found.about, unread(found))


def unread(model: BaseModel, at: str = "") -> Iterator[tuple[str, object]]:
    """The path and value of each field that is set and that no model names."""
    for name, value in (model.model_extra or {}).items():
        if value is not None:
            yield f"{at}{name}", value
    for name, field in type(model).model_fields.items():
        yield from _inside(getattr(model, name), f"{at}{field.alias}")


def _inside(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, BaseModel):
        yield from unread(value, f"{path}.")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _inside(each, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _inside(each, f"{path}[{key}]")


def _quantity(value: Any) -> int:
    found = _amount(value)
    if found is None:
        raise flaw("Must be a quantity of at least 0.")
    return found


def _quantity_or_unlimited(value: Any) -> int:
    if not isinstance(value, bool) and str(value) in ("-1", "-1.0"):
        return UNLIMITED
    found = _amount(value)
    if found is None:
        raise flaw("Must be a number or a quantity of at least 0, or -1.")
    return found


def _amount(value: Any) -> int | None:
    """A number or a quantity in thousandths."""
    return thousandths(repr(value) if isinstance(value, float) else value)


Quantity = Annotated[int, PlainValidator(_quantity)]
"""A quantity in thousandths, rounded up."""

QuantityOrUnlimited = Annotated[int, PlainValidator(_quantity_or_unlimited)]
"""A number or a quantity in thousandths; -1 is unlimited."""
