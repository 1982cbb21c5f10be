"""Base of the models of Moorage's kinds: a model's fields become the schema of its definition.

This module is a door of its own beside `api`, since pydantic takes nine megabytes. A node's driver
and the scheduler plugin do without: they read objects that the API server has validated.
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
    """A field in camel case; `int_` stands for `int`, which would hide the type in the class."""
    return to_camel(name.removesuffix("_"))


class Model(BaseModel):
    """An object, or a part of one. Fields that the model does not name are ignored.

    An absent field and null mean the same, as everywhere in the Kubernetes API.

    Attributes:
        ONE_OF: Names of fields; exactly one of them must be given.
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


class CompleteModel(Model):
    """A part that counts something else if a field of it is ignored: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core_schema, handler)
        # The API server drops unknown fields; a definition must not say so.
        handler.resolve_ref_schema(schema).pop("additionalProperties", None)
        return schema


def extra(**keywords: object) -> Any:
    """A field's schema extensions of Kubernetes: `list_type` is `x-kubernetes-list-type`."""
    return Field(json_schema_extra=extensions(**keywords))


def extensions(**keywords: object) -> dict[str, Any]:
    return {f"x-kubernetes-{name.replace('_', '-')}": value for name, value in keywords.items()}


def rule(expression: str, message: str, field: str = "") -> dict[str, str]:
    """An entry of `x-kubernetes-validations`, which the API server evaluates as CEL.

    Args:
        expression: True if the object is valid.
        message: The error if it is not.
        field: Path from here to the invalid field, such as `.limit`.
    """
    found = {"rule": expression, "message": message}
    return found | ({"fieldPath": field} if field else {})


def flaw(message: str, at: str = "") -> PydanticCustomError:
    """The error that a validator raises about a part of its value.

    Args:
        message: One sentence.
        at: Path from the value to the part, such as `[1].deviceClass`.
    """
    return PydanticCustomError("flaw", "{message}", {"message": message, "at": at})


class Metadata(Model):
    """Metadata of every object; its schema is the API server's own."""

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
    """Everything that is invalid in an object: the field's path, and a sentence.

    Only the model's own validators quote values, since some values are passwords.
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
    """The type inside a value of this type at this step, and whether the step is a field."""
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, Model):
        fields = {field.alias: field.annotation for field in kind.model_fields.values()}
        return fields.get(str(step)), True
    return next(reversed(get_args(kind)), None), False


def _plain(kind: Any) -> Any:
    """A type without annotations and without `None`."""
    while get_origin(kind) not in (None, dict, list, Literal):
        kind = get_args(kind)[0]
    return kind
