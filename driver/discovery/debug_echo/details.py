"""Discovery details of the debugEcho handler, as Akri writes them, and one field more.

descriptions: [foo0, foo1]     # a device for each
shared: false                  # absent: as the handler is told, by default true as in Akri's chart
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.api import Problem
from driver.discovery.details import Fields


@dataclass(frozen=True, slots=True)
class DebugEchoDetails:
    """What a Configuration asks of the debugEcho handler.

    Attributes:
        descriptions: Each is a device, and its id; sorted, and each once.
        shared: Whether all nodes see the same devices, or each has its own; None for not said.
    """

    descriptions: tuple[str, ...]
    shared: bool | None = None


def parse_debug_echo_details(text: str) -> DebugEchoDetails | tuple[Problem, ...]:
    """The details, or all that is wrong with them."""
    fields = Fields(text, ("descriptions", "shared"))
    descriptions = {text.value for text in fields.strings("descriptions")}
    shared = fields.boolean("shared", default=True) if "shared" in fields else None
    return tuple(fields.problems) or DebugEchoDetails(tuple(sorted(descriptions)), shared)
