"""The places where records are, as one: a CDI file for each claim, and two files beside them.

    CDI files ◄── the checkpoint of an earlier driver, taken over once
        └──────► records without CDI files, kept in the driver's folder until they have one

A claim has its record in one place: a CDI file that is there says more than the other two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from driver.api import ClaimUid, NodeName
from driver.preparing.files.cdi import file_name
from driver.preparing.files.disk_checkpoint import EarlierCheckpoint
from driver.preparing.files.disk_records import Files, RecordFiles
from driver.preparing.files.disk_rescue import NAME as RESCUED
from driver.preparing.files.disk_rescue import Rescue
from driver.preparing.files.prepared import PreparedClaim, PreparedClaims

logger = logging.getLogger(__name__)


class RecordPlaces:
    """The records of a node.

    Attributes:
        files: The CDI files, and what is known of claims.
        problem: Why it is not known which claims without CDI files another process kept; "" if
            it is.
    """

    def __init__(
        self,
        name: NodeName,
        boot_id: str,
        data: Files,
        cdi_files: Files,
        dump: Callable[[PreparedClaim], bytes],
    ) -> None:
        """`data` is the driver's own folder; `dump` makes the content of a CDI file."""
        self.files = RecordFiles(cdi_files, boot_id, dump)
        self.problem = ""
        self._boot_id = boot_id
        self._data = data
        self._cdi_files = cdi_files
        self._checkpoint = EarlierCheckpoint(data, name)
        self._rescue = Rescue(data, boot_id)

    def glance(self) -> Iterator[PreparedClaim]:
        """What is prepared, for a hint: nothing of it stays in memory. Raises OSError."""
        records = RecordFiles(self._cdi_files, self._boot_id)
        records.read()
        yield from records.claims.values()
        yield from self._checkpoint.claims()
        rescued = Rescue(self._data, self._boot_id).glance()
        yield from (c for c in rescued if self._is_new(c, records.claims))

    def has_checkpoint(self) -> bool:
        """Whether an earlier driver wrote its checkpoint again."""
        return self._checkpoint.is_there()

    def read(self) -> None:
        """Read all of them. Raises OSError."""
        self.files.read()
        self._checkpoint.take_over(self.files, self._boot_id)
        self.adopt_rescued()

    def adopt_rescued(self) -> None:
        """What another process could not write is lost, unless it is known better."""
        try:
            found = self._rescue.found()
            self.problem = self._rescue.problem()
        except OSError as error:
            self.problem = f"{RESCUED} cannot be read: {error}"
            logger.error("Nothing new is prepared: %s", self.problem)  # noqa: TRY400
            return
        for claim in found:
            if self._is_new(claim, self.files.claims):
                self.files.hold_rescued(claim)

    def _is_new(self, claim: PreparedClaim, known: PreparedClaims) -> bool:
        return claim.boot_id == self._boot_id and claim.reference.uid not in known

    def keep_rescued(self, without: ClaimUid | None = None) -> None:
        """Keep the records of claims that have no CDI file, but for one. Raises OSError."""
        uids = (uid for uid in self.files.without_files if uid != without)
        self._rescue.keep([self.files.claims[uid] for uid in uids])

    def remove(self, uid: ClaimUid) -> None:
        """Remove a claim's record, wherever it is. Raises OSError."""
        if self._rescue.has(uid) or not self.files.has_file(uid):
            # Before memory: a claim that is rescued still comes back with the next process.
            self.keep_rescued(without=uid)
        self.files.remove(uid)
        self.note_released(uid)

    def note_released(self, uid: ClaimUid) -> None:
        """Take no record of this claim from other processes: its devices are free."""
        self._rescue.note_released(uid)

    def place_of(self, uid: ClaimUid) -> str:
        """Where a claim's record is, as a part of a sentence."""
        return f"CDI file {file_name(uid)}" if self.files.has_file(uid) else RESCUED
