"""Models of our own kinds: what a model's fields say becomes the schema of its definition.

A door of its own beside `api`, since pydantic takes nine megabytes that a node's driver and the
scheduler plugin can do without: they read what the API server has checked already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from kube.shapes.names import NAME

OBJECT_NAME = f"^{NAME}$"
OBJECT_NAME_OR_NONE = f"^({NAME})?$"

Counter = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


def _alias(name: str) -> str:
    """A field in camel case; `int_` is `int`, which the class could not do without."""
    return to_camel(name.removesuffix("_"))


class Model(BaseModel):
    """An object, or a part of one. Fields that it does not name are somebody else's.

    An absent field and null mean the same, as everywhere in the Kubernetes API.

    Attributes:
        ONE_OF: Fields of which exactly one is given.
    """

    model_config = ConfigDict(
        alias_generator=_alias,
        frozen=True,
        hide_input_in_errors=True,
        strict=True,
        use_attribute_docstrings=True,
    )
    ONE_OF: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if self.ONE_OF and len(self.model_fields_set.intersection(self.ONE_OF)) != 1:
            names = ", ".join(_alias(name) for name in self.ONE_OF)
            raise ValueError(f"Exactly one of {names} must be given.")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        if cls.ONE_OF:
            alternatives = [{"required": [_alias(name)]} for name in cls.ONE_OF]
            handler.resolve_ref_schema(schema)["oneOf"] = alternatives
        return schema


def extra(**keywords: object) -> Any:
    """A field's keywords that only Kubernetes knows: `list_type` is `x-kubernetes-list-type`."""
    return Field(json_schema_extra=extensions(**keywords))


def extensions(**keywords: object) -> dict[str, Any]:
    return {f"x-kubernetes-{name.replace('_', '-')}": value for name, value in keywords.items()}


def rule(expression: str, message: str, field: str = "") -> dict[str, str]:
    """One of `x-kubernetes-validations`: what the API server asks in CEL.

    Args:
        expression: True of what may be written.
        message: What it says otherwise.
        field: Path from here to the field that is at fault, such as `.limit`.
    """
    found = {"rule": expression, "message": message}
    return found | ({"fieldPath": field} if field else {})


def flaw(message: str, at: str = "") -> PydanticCustomError:
    """What a validator raises about a part of what it was given.

    Args:
        message: One sentence.
        at: Path from the value to the part, such as `[1].deviceClass`.
    """
    return PydanticCustomError("flaw", "{message}", {"message": message, "at": at})


class Metadata(Model):
    """What every object has; its schema is the API server's own."""

    name: str


class Requirement(Model):
    """One requirement on one label."""

    model_config = ConfigDict(
        json_schema_extra=extensions(
            validations=[
                rule(
                    "self.operator in ['In', 'NotIn'] ? has(self.values) &&"
                    " size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
                    "In and NotIn need values; Exists and DoesNotExist take none",
                    ".values",
                )
            ]
        )
    )
    key: Annotated[str, Field(min_length=1, max_length=317)]
    """The label's key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label relates to the values."""
    values: Annotated[
        list[Annotated[str, Field(max_length=63)]] | None,
        Field(max_length=1000),
        extra(list_type="atomic"),
    ] = None
    """What In and NotIn compare the label's value with."""

    @model_validator(mode="after")
    def _takes_values(self) -> Self:
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            needs = "no values" if self.values else "at least one value"
            raise flaw(f"{self.operator} takes {needs}.", ".values")
        return self


class LabelSelector(Model):
    """Which labels an object must have; without any requirement, all objects are selected."""

    match_labels: dict[str, Annotated[str, Field(max_length=63)]] | None = None
    """Labels that an object must have, each with this very value."""
    match_expressions: Annotated[
        list[Requirement] | None, Field(max_length=100), extra(list_type="atomic")
    ] = None
    """Requirements that an object must meet, all of them."""


class Condition(Model):
    """One aspect of the state."""

    type: Annotated[
        str,
        Field(
            max_length=316,
            pattern=rf"^({NAME}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    """The aspect's name, in camel case."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    observed_generation: Counter | None = None
    """The generation of the spec that this condition is about."""
    last_transition_time: Time
    """When the status last changed."""
    reason: Annotated[
        str,
        Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ]
    """Why, as one word for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, as a sentence for people."""


Conditions = Annotated[list[Condition] | None, extra(list_type="map", list_map_keys=["type"])]


def flaws(model: type[Model], body: object) -> Iterator[tuple[str, str]]:
    """All that is wrong with an object: the field's path as Kubernetes writes it, and a sentence.

    No value is quoted but by the model's own validators, since some are passwords.
    """
    try:
        model.model_validate(body)
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            yield _path(model, found), _sentence(found)


def _sentence(found: ErrorDetails) -> str:
    if isinstance(error := found.get("ctx", {}).get("error"), ValueError):
        return str(error)
    return f"{found['msg'].removesuffix('.')}."


def _path(model: type[Model], found: ErrorDetails) -> str:
    path, kind, at = "", model, found.get("ctx", {}).get("at", "")
    for step in found["loc"]:
        inside, is_field = _step(kind, step)
        path, kind = path + (f".{step}" if is_field else f"[{step}]"), inside
    return f"{path.removesuffix('[[key]]')}{at}".removeprefix(".")


def _step(kind: Any, step: int | str) -> tuple[Any, bool]:
    """What is there in a value of this kind, and whether that is a field of it."""
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, Model):
        fields = {field.alias: field.annotation for field in kind.model_fields.values()}
        return fields.get(str(step)), True
    return next(reversed(get_args(kind)), None), False


def _plain(kind: Any) -> Any:
    """A type without what is said about it, and without `None`."""
    while get_origin(kind) not in (None, dict, list, Literal):
        kind = get_args(kind)[0]
    return kind
