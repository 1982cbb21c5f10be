"""Filters of discovery details: a list of what is wanted, or of what is not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from driver.discovery.details import Section

INCLUDE = "Include"
EXCLUDE = "Exclude"


@dataclass(frozen=True, slots=True)
class Filter:
    """A list of what is wanted, or of what is not.

    Attributes:
        include: Whether only devices with one of the items are accepted, or only those without.
    """

    items: tuple[str, ...]
    include: bool = True

    def accepts(self, values: Collection[str] | None) -> bool:
        """Whether a device passes.

        Args:
            values: What the device has; None where that cannot be known. A filter that names
                nothing lets such a device pass only if it excludes, any other does not.
        """
        if not self.items and not self.include:
            return True
        return values is not None and any(item in values for item in self.items) == self.include


ACCEPT_ALL = Filter((), include=False)


def read_filter(
    fields: Section, name: str, normal: Callable[[str], str] = lambda item: item
) -> Filter:
    """The filter that a field holds; an absent one accepts all.

    Args:
        fields: Where the field is.
        name: Of the field.
        normal: The form in which items are compared.
    """
    section = fields.section(name, ("items", "action"))
    if section is None:
        return ACCEPT_ALL
    items = tuple(normal(item.value) for item in section.strings("items", empty=True))
    action = section.choice("action", (INCLUDE, EXCLUDE), default=INCLUDE)
    return Filter(items, include=action == INCLUDE)
