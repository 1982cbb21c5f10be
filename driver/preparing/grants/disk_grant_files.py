"""The files of prepared claims: CDI files with records, device metadata, and rescued records.

    a claim ──put──► device metadata, its CDI file
    Renewals ──carry_out──► the same files; an OSError for each that could not be written

Only `disk_grants` calls this, with the lock held. `records` describes the state after a kill
between two writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from driver.api import ClaimUid, NodeName
from driver.preparing.files import cdi
from driver.preparing.files.disk_checkpoint import EarlierCheckpoint
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.disk_records import Files, RecordFiles
from driver.preparing.files.disk_rescue import NAME as RESCUED
from driver.preparing.files.disk_rescue import Rescue
from driver.preparing.files.metadata import Known
from driver.preparing.files.prepared import PreparedClaim, PreparedClaims
from driver.preparing.grants.rival_claims import Renewal

logger = logging.getLogger(__name__)


class GrantFiles:
    """The files of one node's prepared claims.

    Attributes:
        records: The records of the claims, each in its CDI file.
        rescue: The records of claims whose CDI files cannot be written.
        metadata: The files of device metadata; None if containers get none. It must be set before
            `recover`.
        renewals: The renewals that were carried out and not yet returned.
        folder_problem: A part of a sentence: why CDI files cannot be written; "" if the last write,
            or the last check of their folder, succeeded.
        metadata_problem: The same for device metadata.
        rescue_problem: Why the rescued records of other processes are unknown; "" if they are
            known. No new claim is granted meanwhile.
    """

    def __init__(self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files) -> None:
        """`data` is the driver's own folder, where an earlier driver stored its checkpoint."""
        self.records = RecordFiles(cdi_files, boot_id, self._dump)
        self.rescue = Rescue(data, boot_id)
        self.metadata: MetadataFiles | None = None
        self.renewals: list[Renewal] = []
        self.folder_problem = ""
        self.metadata_problem = ""
        self.rescue_problem = ""
        self._boot_id = boot_id
        self._data = data
        self._cdi_files = cdi_files
        self._checkpoint = EarlierCheckpoint(data, name)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the checkpoint of an earlier driver exists; `read` takes it over."""
        return self._checkpoint.is_there()

    def peek(self) -> Iterator[PreparedClaim]:
        """See `Node.peek`."""
        records = RecordFiles(self._cdi_files, self._boot_id)
        records.read()
        yield from records.claims.values()
        yield from self._checkpoint.claims()
        rescued = Rescue(self._data, self._boot_id).peek()
        yield from (c for c in rescued if self._is_new(c, records.claims))

    def _is_new(self, claim: PreparedClaim, known: PreparedClaims) -> bool:
        return claim.boot_id == self._boot_id and claim.reference.uid not in known

    def recover(self) -> None:
        """Read the files of an earlier process, and correct outdated ones."""
        self.read()
        for error in _tried(self.keep_rescued):
            logger.error("Records of claims without CDI files cannot be stored: %s", error)
        if self.metadata is not None:
            self.metadata.tidy(self.records.claims.values())
        self.records.tidy()

    def read(self) -> None:
        """Read the files that other processes wrote. Raises OSError."""
        self.records.read()
        self._checkpoint.take_over(self.records, self._boot_id)
        self.adopt_rescued()

    def adopt_rescued(self) -> None:
        """Add rescued claims of other processes as lost claims, unless they are known."""
        try:
            found = self.rescue.found()
            self.rescue_problem = self.rescue.problem()
        except OSError as error:
            self.rescue_problem = f"{RESCUED} cannot be read: {error}"
            logger.error("No new claim is prepared: %s", self.rescue_problem)  # noqa: TRY400
            return
        for claim in found:
            if self._is_new(claim, self.records.claims):
                self.records.hold_rescued(claim)

    def keep_rescued(self, without: ClaimUid | None = None) -> None:
        """Store the records of claims without CDI files. Raises OSError."""
        uids = (uid for uid in self.records.without_files if uid != without)
        self.rescue.keep([self.records.claims[uid] for uid in uids])

    def _dump(self, claim: PreparedClaim) -> bytes:
        return cdi.dump(claim, None if self.metadata is None else self.metadata.path)

    def put(self, claim: PreparedClaim, known: Known) -> None:
        """Write a claim's device metadata, then its CDI file. Raises OSError."""
        try:
            self._keep_metadata(claim, known)
        except OSError as error:
            self.metadata_problem = str(error)
            raise
        self.metadata_problem = ""
        self.put_record(claim)

    def put_record(self, claim: PreparedClaim) -> None:
        """Write a claim's CDI file if it is outdated. Raises OSError."""
        try:
            if self.records.put(claim):
                self.folder_problem = ""
        except OSError as error:
            self.folder_problem = str(error)
            raise

    def remove(self, claim: PreparedClaim) -> None:
        """Remove a claim's CDI file, then its device metadata. Raises OSError."""
        uid = claim.reference.uid
        if self.rescue.has(uid) or not self.records.has_file(uid):
            # First on disk: the next process would restore a rescued claim.
            self.keep_rescued(without=uid)
        self.records.remove(uid)
        self.rescue.note_released(uid)
        if self.metadata is not None:
            self.metadata.remove(claim)

    def carry_out(
        self,
        changes: Mapping[ClaimUid, Renewal],
        known: Known,
        only: Collection[ClaimUid] | None,
    ) -> Iterator[OSError]:
        """Write all changes; yield the errors of those that failed."""
        if only is None:
            self.records.look()
        lost = frozenset(self.records.lost)
        for uid in dict.fromkeys((*self.records.withheld, *changes)):
            claim = changes[uid].after if uid in changes else self.records.claims[uid]
            if uid in lost:
                self.records.hold(claim)
                self.renewals.append(changes[uid])
            elif failures := _tried(partial(self.records.put, claim)):
                yield from (*failures, *_tried(partial(self.records.withhold, uid)))
            elif uid in changes:
                self.renewals.append(changes[uid])
        for uid in self.records.claims if only is None else only:
            if (kept := self.records.claims.get(uid)) is not None:
                yield from _tried(partial(self._keep_metadata, kept, known))
        yield from _tried(self._check_folder)

    def _check_folder(self) -> None:
        """Check whether files can be written, and store the records of claims without files."""
        had_failed = bool(self.folder_problem)
        self.folder_problem = self.records.problem(thoroughly=had_failed)
        if self.metadata_problem and self.metadata is not None:
            self.metadata_problem = self.metadata.problem()
        self.adopt_rescued()
        self.keep_rescued()

    def _keep_metadata(self, claim: PreparedClaim, known: Known) -> None:
        if self.metadata is not None and not claim.doubt:
            self.metadata.keep(claim, known)


def _tried(work: Callable[[], object]) -> tuple[OSError, ...]:
    try:
        work()
    except OSError as error:
        return (error,)
    return ()
