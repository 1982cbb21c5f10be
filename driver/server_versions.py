"""Readings of the API server's version: tells when features are to be probed again.

Several API servers behind one address are upgraded one after the other, and requests reach one or
the other meanwhile. So a new version counts once it was read several times in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

READINGS = 3


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

    def read(self, version: str) -> bool:
        """Take a reading; returns whether the server has settled on a version not yet probed."""
        self._count = self._count + 1 if version == self._last else 1
        self._last = version
        if version == self.probed or self._count < READINGS:
            return False
        self.probed = version
        return True
