"""The part of a Configuration that says how devices are discovered, as models."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kube.models import (
    Model,
)


class EntryReference(Model):
    """An entry of a Secret or a ConfigMap."""

    key: str | None = None
    """The entry's key."""
    name: str
    """The object's name."""
    namespace: str | None = None
    """The object's namespace. Absent means the namespace default, not that of the
    Configuration."""
    optional: bool | None = None
    """Whether discovery continues without the value if the entry does not exist. Absent means
    false."""


class ValueSource(Model):
    """The source of the value."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("secret_key_ref", "config_map_key_ref")
    secret_key_ref: EntryReference | None = None
    """An entry of a Secret."""
    config_map_key_ref: EntryReference | None = None
    """An entry of a ConfigMap."""


class DiscoveryProperty(Model):
    """One value, given in place or by reference."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("value", "value_from")
    name: Annotated[str, Field(pattern=r"^[_A-Za-z][_A-Za-z0-9]*$")]
    """The name of the value for the handler."""
    value: str | None = None
    """The value itself."""
    value_from: ValueSource | None = None


class DiscoveryHandler(Model):
    """The discovery handler, and its settings."""

    name: str | None = None
    """The name under which the discovery handler is registered, such as udev or onvif."""
    discovery_details: str | None = None
    """What to discover, as text in the handler's own format; the handlers of Moorage and Akri read
    YAML. Absent means the empty text."""
    discovery_properties: Annotated[
        list[DiscoveryProperty] | None, Field(json_schema_extra={"nullable": True})
    ] = None
    """Named values for the handler beside the details, such as credentials."""
