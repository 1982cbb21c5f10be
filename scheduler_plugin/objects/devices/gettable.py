"""What requests can get at most, remembered until classes, devices or results change.

Thousands of waiting claims are made of few templates, and of 100,000 devices each may have to be
looked at to find the costliest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from cachetools import LRUCache

from scheduler_plugin.objects.devices.open_looks import OpenGroup

MOST_REMEMBERED = 10_000
"""How many different requests are remembered: more than templates of a cluster."""


class AtMost(NamedTuple):
    """What a request can get at most.

    Attributes:
        cost: The most that one device may cost.
        open_group: What is to be evaluated before that is certain; None for nothing.
    """

    cost: int
    open_group: OpenGroup | None


class Gettable:
    """The results of one version of the catalog."""

    def __init__(self) -> None:
        self._version: Hashable = None
        self._found: LRUCache[Hashable, AtMost] = LRUCache(MOST_REMEMBERED)

    def at_most(self, version: Hashable, request: Hashable, find: Callable[[], AtMost]) -> AtMost:
        """What `find` returns for a request, or returned for it at this version."""
        if version != self._version:
            self._found.clear()
            self._version = version
        if (known := self._found.get(request)) is None:
            known = self._found[request] = find()
        return known
