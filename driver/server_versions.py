"""Readings of the API server's version: tells when features are to be probed again.

Several API servers behind one address are upgraded one after the other. Meanwhile requests reach
one or the other, and so does a probe. So a new version counts once it was read several times in a
row, and many times once an earlier version was read again: an upgrade that stops halfway must not
end this process again and again. The version that was probed is probed again, too, if another one
was read since.
"""

from __future__ import annotations

from dataclasses import dataclass, field

READINGS = 5
"""Readings of a new version in a row after which features are probed: some minutes."""

UNSETTLED_READINGS = 40
"""The same once versions alternated: half an hour. If two of three servers are upgraded and
each request reaches any of them, forty answers in a row are theirs once in some decades."""


class FeaturesChangedError(Exception):
    """Raised if the upgraded API server keeps other fields than the one that was probed."""


@dataclass(slots=True)
class ServerVersions:
    """The version that was probed, and the readings since.

    Attributes:
        probed: The version of the API server when its features were probed.
    """

    probed: str
    _last: str = ""
    _count: int = 0
    _read: set[str] = field(default_factory=set)
    _alternated: bool = False

    def __post_init__(self) -> None:
        self._start(self.probed)

    def read(self, version: str) -> bool:
        """Take a reading; returns whether features are to be probed, at a settled version."""
        if version == self._last:
            self._count += 1
        else:
            self._alternated = self._alternated or version in self._read
            self._last, self._count = version, 1
            self._read.add(version)
        needed = UNSETTLED_READINGS if self._alternated else READINGS
        if self._read == {self.probed} or self._count < needed:
            return False
        self._start(version)
        return True

    def _start(self, version: str) -> None:
        self.probed = self._last = version
        self._count, self._read, self._alternated = 0, {version}, False
