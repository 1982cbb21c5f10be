"""What every handler is, as those who ask one see it; `handlers` knows which there are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, TypeVar

from driver.devices import Device

Details = TypeVar("Details", contravariant=True)

Properties = Mapping[str, bytes | None]
"""A Configuration's `discoveryProperties`, resolved, by name; None for one without a value."""

NO_PROPERTIES: Properties = {}


class DiscoveryHandler(Protocol[Details]):
    """Finds devices of one kind."""

    name: str

    @property
    def problem(self) -> str | None:
        """Why devices cannot be discovered now, in one sentence; the handler keeps trying."""

    def is_shared(self, details: Details) -> bool:
        """Whether several nodes may see one and the same device that these details ask for."""

    def discover(
        self, details: Details, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all devices, sorted by id, and again whenever they change.

        When the properties change, a new call takes the place of this one.

        Nothing is yielded before the devices are known, so that 'none' is never mistaken for
        'not heard yet', nor while they cannot be known.
        """
