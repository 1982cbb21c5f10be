"""The records of prepared claims on disk: a CDI file for each, and a copy in memory.

If a device moved and its file cannot be written, the file is withheld: it is renamed to a name that
no runtime reads. That needs no space on a full disk, and keeps the record.

If a file is missing, another driver released the claim and removed it, or a person removed it,
which releases nothing. The folder does not show which. So the claim is lost: it stays in memory,
and no other claim gets its devices, until its use is known, see `lost_claims`. A partly unknown
record cannot be written: without its file it is forgotten, unless the record is kept elsewhere
(`hold_rescued`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from driver.api import ClaimUid, DeviceName
from driver.preparing.files import cdi
from driver.preparing.files.prepared import (
    VERSION,
    AllocatedDevice,
    PreparedClaim,
    PreparedClaims,
    lost_claim,
)
from driver.preparing.files.records import Unreadable

logger = logging.getLogger(__name__)


class Files(Protocol):
    """A folder of atomically replaced files; see `disk.Folder`."""

    def names(self) -> list[str]: ...
    def problem(self, *, thoroughly: bool = False) -> str: ...
    def read(self, name: str) -> bytes | None: ...
    def signature(self, name: str) -> object: ...
    def write(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def rename(self, name: str, other: str) -> None: ...


def _given(claims: Iterable[PreparedClaim]) -> Mapping[DeviceName, list[AllocatedDevice]]:
    """The devices of claims by name, so that not all claims are compared with each other."""
    found: dict[DeviceName, list[AllocatedDevice]] = {}
    for claim in claims:
        for device in claim.devices:
            found.setdefault(device.allocated.device, []).append(device.allocated)
    return found


def _is_given_on(claim: PreparedClaim, given: Mapping[DeviceName, list[AllocatedDevice]]) -> bool:
    """Whether another claim has a device of a claim without a file.

    A driver grants a device only after it released the claim that had it. So that claim has ended.
    """
    return any(
        device.allocated.excludes(other)
        for device in claim.devices
        for other in given.get(device.allocated.device, ())
    )


class RecordFiles:
    """The records of a node.

    Attributes:
        claims: The claims of this boot in the files, and the lost claims.
        doubtful: The claims with partly unknown records, see `PreparedClaim.doubt`.
    """

    def __init__(
        self, files: Files, boot_id: str, dump: Callable[[PreparedClaim], bytes] = cdi.dump
    ) -> None:
        """`dump` returns the content of a claim's file."""
        self.claims: PreparedClaims = {}
        self.doubtful: Mapping[ClaimUid, PreparedClaim] = {}
        self._files = files
        self._boot_id = boot_id
        self._dump = dump
        self._seen: dict[str, tuple[object, PreparedClaim]] = {}
        self._rescued: set[ClaimUid] = set()

    @property
    def withheld(self) -> tuple[ClaimUid, ...]:
        """Claims with withheld files."""
        return tuple(uid for uid in self.claims if cdi.withheld_name(uid) in self._seen)

    @property
    def lost(self) -> tuple[ClaimUid, ...]:
        """Claims with complete records and, when `look` or `read` last ran, without files."""
        return tuple(uid for uid in self.without_files if not self.claims[uid].doubt)

    @property
    def without_files(self) -> tuple[ClaimUid, ...]:
        """Lost claims, and claims with partly unknown records that are kept elsewhere."""
        return tuple(
            uid
            for uid, claim in self.claims.items()
            if not self.has_file(uid) and (not claim.doubt or uid in self._rescued)
        )

    def has_file(self, uid: ClaimUid) -> bool:
        """Whether a claim had a file when `look` or `read` last ran."""
        return cdi.file_name(uid) in self._seen or cdi.withheld_name(uid) in self._seen

    def look(self) -> None:
        """Find out which files are missing, without reading the others. Raises OSError."""
        for gone in self._seen.keys() - frozenset(self._files.names()):
            del self._seen[gone]

    def problem(self, *, thoroughly: bool = False) -> str:
        """Why files cannot be written; "" if no problem is found."""
        return self._files.problem(thoroughly=thoroughly)

    def read(self) -> None:
        """Read the files of other processes. Raises OSError."""
        ours = ((name, uid) for name in self._files.names() if (uid := cdi.claim_of(name)))
        found = {name: seen for name, uid in ours if (seen := self._look(name, uid))}
        claims: dict[ClaimUid, PreparedClaim] = {}
        for _, claim in found.values():  # the withheld one of two files is older
            if claim.boot_id == self._boot_id:
                claims.setdefault(claim.reference.uid, claim)
        given = _given(claims.values())
        for uid, claim in self.claims.items():
            is_kept = not claim.doubt or uid in self._rescued
            if is_kept and uid not in claims and not _is_given_on(claim, given):
                claims[uid] = claim
        self._seen = found
        self._rescued &= claims.keys()
        self._use(claims)

    def _look(self, name: str, uid: ClaimUid) -> tuple[object, PreparedClaim] | None:
        signature, known = self._files.signature(name), self._seen.get(name)
        if known is not None and known[0] == signature is not None:
            return known
        text = self._files.read(name)
        return None if text is None else (signature, self._loaded(name, uid, text))

    def _loaded(self, name: str, uid: ClaimUid, text: bytes) -> PreparedClaim:
        claim = cdi.load(text, uid)
        if isinstance(claim, Unreadable):
            logger.error("CDI file %s is unreadable: %s", name, claim.reason)
            return lost_claim(uid, self._boot_id)
        return claim

    def _use(self, claims: PreparedClaims) -> None:
        self.claims = claims
        self.doubtful = {uid: claim for uid, claim in claims.items() if claim.doubt}

    def put(self, claim: PreparedClaim) -> bool:
        """Write a claim's file, unless it is up to date. Raises OSError.

        Returns:
            Whether it was written.
        """
        uid = claim.reference.uid
        name = cdi.file_name(uid)
        is_new = claim.version <= VERSION and self._seen.get(name) != self._as_now(name, claim)
        if is_new:
            self._files.write(name, self._dump(claim))
            self._seen[name] = self._as_now(name, claim)
        if self._seen.pop(withheld := cdi.withheld_name(uid), None):
            self._files.remove(withheld)
        if self.claims.get(uid) is not claim:
            self.hold(claim)
        return is_new

    def _as_now(self, name: str, claim: PreparedClaim) -> tuple[object, PreparedClaim]:
        return self._files.signature(name), claim

    def hold_rescued(self, claim: PreparedClaim) -> None:
        """Add a claim whose record is kept elsewhere, also a partly unknown one; `read` keeps it.

        A claim has ended if another claim has its device: a driver of an earlier version, which
        does not read such records, ran in between.
        """
        with_files = [c for uid, c in self.claims.items() if self.has_file(uid)]
        if _is_given_on(claim, _given(with_files)):
            logger.warning("Claim %s has ended: its device is another's", claim.reference)
            return
        self._rescued.add(claim.reference.uid)
        self.hold(claim)

    def hold(self, claim: PreparedClaim) -> None:
        """Add a claim whose file cannot be written; `read` forgets it if it is partly unknown."""
        uid = claim.reference.uid
        self.claims = {**self.claims, uid: claim}
        if uid in self.doubtful or claim.doubt:
            self._use(self.claims)

    def remove(self, uid: ClaimUid) -> None:
        """Remove a claim's files. Raises OSError."""
        for name in (cdi.withheld_name(uid), cdi.file_name(uid)):
            if name in self._seen:
                self._files.remove(name)
                del self._seen[name]
        self._use({known: claim for known, claim in self.claims.items() if known != uid})

    def withhold(self, uid: ClaimUid) -> None:
        """Rename a claim's file so that no container can start with it. Raises OSError."""
        name, withheld = cdi.file_name(uid), cdi.withheld_name(uid)
        if name in self._seen:
            self._files.rename(name, withheld)
            del self._seen[name]
            self._seen[withheld] = self._as_now(withheld, self.claims[uid])

    def tidy(self) -> None:
        """Remove files of an earlier boot, and write files anew that differ from their record.

        Files of a newer driver stay unchanged; withheld files stay so until their claim is planned.
        """
        for name, (_, claim) in tuple(self._seen.items()):
            try:
                if claim.boot_id == self._boot_id:
                    self._put_right(name, claim)
                elif claim.version <= VERSION:
                    logger.warning("CDI file %s is of an earlier boot; removing", name)
                    self._files.remove(name)
                    del self._seen[name]
            except OSError:
                logger.exception("CDI file %s cannot be corrected", name)

    def _put_right(self, name: str, claim: PreparedClaim) -> None:
        if claim.doubt or name != cdi.file_name(claim.reference.uid):
            return
        if self._files.read(name) != self._dump(claim):
            logger.warning("CDI file %s differs from its record; writing it again", name)
            self._seen.pop(name, None)
            self.put(claim)
