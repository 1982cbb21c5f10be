"""Filters of discovery details: a list of what is included, or of what is excluded."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from driver.discovery.details import Section

INCLUDE = "Include"
EXCLUDE = "Exclude"


@dataclass(frozen=True, slots=True)
class Filter:
    """A list of items that are included, or excluded.

    Attributes:
        include: True accepts only devices with one of the items; False only devices without.
    """

    items: tuple[str, ...]
    include: bool = True

    def accepts(self, values: Collection[str] | None) -> bool:
        """Whether a device passes.

        Args:
            values: What the device has; None if that is unknown. An unknown device passes only
                an empty filter that excludes.
        """
        if not self.items and not self.include:
            return True
        return values is not None and any(item in values for item in self.items) == self.include


ACCEPT_ALL = Filter((), include=False)


def read_filter(
    fields: Section, name: str, normal: Callable[[str], str] = lambda item: item
) -> Filter:
    """The filter that a field holds; an absent field accepts every device.

    Args:
        fields: The section with the field.
        name: The field's name.
        normal: Converts an item to the form in which items are compared.
    """
    section = fields.section(name, ("items", "action"))
    if section is None:
        return ACCEPT_ALL
    items = tuple(normal(item.value) for item in section.strings("items", empty=True))
    action = section.choice("action", (INCLUDE, EXCLUDE), default=INCLUDE)
    return Filter(items, include=action == INCLUDE)
