"""The checkpoint of the driver before this one: taken over once, and removed.

That driver may serve still, in an update, and looks whether its checkpoint is the one that it knows
each time before it grants or releases. So the file is removed whenever it is there again: it then
reads the CDI files, and sees what this driver granted.
"""

from __future__ import annotations

import logging

from driver.api import NodeName
from driver.preparing.files.checkpoint import LEFT, NAME, load
from driver.preparing.files.disk_records import Files, RecordFiles
from driver.preparing.files.prepared import Home, PreparedClaim
from driver.preparing.files.records import Unreadable

logger = logging.getLogger(__name__)


class EarlierCheckpoint:
    """The checkpoint of a node's earlier driver, in that driver's folder."""

    def __init__(self, files: Files, node: NodeName) -> None:
        self._files = files
        self._node = node
        self._is_taken_over = False

    def is_there(self) -> bool:
        """Whether there is one now."""
        return self._files.signature(NAME) is not None

    def claims(self) -> tuple[PreparedClaim, ...]:
        """What it says; nothing where there is none, or it is unreadable. Raises OSError."""
        text = self._files.read(NAME)
        found = {} if text is None else load(text, self._node)
        if isinstance(found, Unreadable):
            logger.error("The earlier driver's checkpoint is unreadable: %s", found.reason)
            return ()
        return tuple(found.values())

    def take_over(self, records: RecordFiles, boot_id: str) -> None:
        """Make records of its claims, once, and remove it as often as it is there.

        An entry without a CDI file is kept, too: that driver removes the file of a device that
        moved when its disk is full. Killed, or on a full disk, it is there still and taken over by
        the next call.

        Raises:
            OSError: If it can be neither read nor removed.
        """
        if not self._is_taken_over:
            current = (c for c in self.claims() if c.boot_id == boot_id and c.devices)
            unwritten = [claim for claim in current if not _restored(claim, records)]
            self._is_taken_over = not unwritten
            for name in self._files.names():
                if name.startswith(LEFT):  # properties of devices may be secrets
                    self._files.remove(name)
        if self._is_taken_over and self.is_there():
            self._files.remove(NAME)


def _restored(claim: PreparedClaim, records: RecordFiles) -> bool:
    """Whether it has a record; where both say something, the one of this driver is newer."""
    known = records.claims.get(claim.reference.uid)
    if known is not None and known.home != Home():
        return True
    try:
        records.put(claim)
    except OSError:
        logger.exception("The record of claim %s cannot be written", claim.reference)
        records.hold(claim)
        return False
    return True
