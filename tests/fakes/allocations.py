"""A fake watch of claims, for devices that claims got before the watch tells of them."""

from __future__ import annotations

from driver.api import DeviceName


class FakeAllocations:
    """What claims have, as a watch shows it: known when it is listed, and then late.

    Attributes:
        claims: The pool and the device of each allocation.
        known: Those that the watch has told of; None before the list.
    """

    def __init__(self, claims: set[tuple[str, str]] | None = None) -> None:
        self.claims = set() if claims is None else claims
        self.is_on = False
        self.known: frozenset[tuple[str, str]] | None = None

    def allocated_in(self, pool: str) -> frozenset[DeviceName] | None:
        if self.known is None:
            return None
        return frozenset(DeviceName(device) for p, device in self.known if p == pool)

    def turn_on(self) -> None:
        self.is_on = True

    def renew(self) -> None:
        self.is_on, self.known = True, None

    def turn_off(self) -> None:
        self.is_on, self.known = False, None

    def watch(self) -> None:
        """The list comes in, or what happened since."""
        if self.is_on:
            self.known = frozenset(self.claims)
