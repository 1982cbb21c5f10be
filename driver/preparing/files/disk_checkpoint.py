"""The checkpoint of the driver before this one: taken over once, and removed.

During an update the earlier driver may still serve. Before each grant and release it checks whether
its checkpoint is unchanged. So this driver removes the file whenever it exists: the earlier driver
then reads the CDI files, with the claims that this driver granted.
"""

from __future__ import annotations

import logging

from driver.api import NodeName
from driver.preparing.files.checkpoint import LEFTOVER_PREFIXES, NAME, load
from driver.preparing.files.disk_records import Files, RecordFiles
from driver.preparing.files.prepared import Home, PreparedClaim
from driver.preparing.files.records import Unreadable

logger = logging.getLogger(__name__)


class EarlierCheckpoint:
    """The checkpoint of a node's earlier driver, in its folder."""

    def __init__(self, files: Files, node: NodeName) -> None:
        self._files = files
        self._node = node
        self._is_taken_over = False

    def is_there(self) -> bool:
        """Whether a checkpoint exists now."""
        return self._files.signature(NAME) is not None

    def claims(self) -> tuple[PreparedClaim, ...]:
        """Its claims; () if it does not exist, or is unreadable. Raises OSError."""
        text = self._files.read(NAME)
        found = {} if text is None else load(text, self._node)
        if isinstance(found, Unreadable):
            logger.error("The earlier driver's checkpoint is unreadable: %s", found.reason)
            return ()
        return tuple(found.values())

    def take_over(self, records: RecordFiles, boot_id: str) -> None:
        """Make records of its claims, once; remove it whenever it exists.

        A claim without a CDI file is kept, too: on a full disk the earlier driver removes the file
        of a device that moved. If this process is killed, or the disk is full, the checkpoint
        remains, and the next call takes it over.

        Raises:
            OSError: If it can be neither read nor removed.
        """
        if not self._is_taken_over:
            current = (c for c in self.claims() if c.boot_id == boot_id and c.devices)
            unwritten = [claim for claim in current if not _restored(claim, records)]
            self._is_taken_over = not unwritten
            for name in self._files.names():
                if name.startswith(LEFTOVER_PREFIXES):  # properties of devices may be secrets
                    self._files.remove(name)
        if self._is_taken_over and self.is_there():
            self._files.remove(NAME)


def _restored(claim: PreparedClaim, records: RecordFiles) -> bool:
    """Write the record of a claim, unless this driver has a newer one; whether it has one then."""
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
