"""The interface that every discovery handler implements; `handlers` lists the handlers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, TypeVar

from driver.devices import Device

Details = TypeVar("Details", contravariant=True)

Properties = Mapping[str, bytes | None]
"""The resolved `discoveryProperties` of a Configuration by name; None: it has no value."""

NO_PROPERTIES: Properties = {}


class DiscoveryHandler(Protocol[Details]):
    """Finds devices of one kind."""

    name: str

    @property
    def problem(self) -> str | None:
        """One sentence: why devices cannot be discovered now. The handler keeps trying."""

    def is_shared(self, details: Details) -> bool:
        """Whether several nodes may see the same device that these details select."""

    def discover(
        self, details: Details, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all devices, sorted by id, and again whenever they change.

        The caller makes a new call when the properties change, and closes this one.

        The handler yields nothing before it knows the devices, and nothing while it cannot know
        them: an empty list always means that there is no device.
        """
