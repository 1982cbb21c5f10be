"""Keeps the records of claims whose CDI files are missing and cannot be written.

The kubelet prepares a claim only once. While the folder of CDI files is missing, the driver's
memory has the only records of prepared claims, and they would end with its process. So the driver
keeps them in its own folder, and the next process reads them. The file has no claim that has a CDI
file.

Each entry is read on its own. An unreadable entry, and an entry of a newer driver, is in doubt and
stays unchanged until its claim has ended. A process does not change entries that it never read:
another driver wrote them. There is one exception. If this process releases a claim that another
driver knows, that driver sees a missing file and writes an entry; this process ignores and removes
entries of claims that it released.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from driver.api import ClaimUid
from driver.preparing.files import records
from driver.preparing.files.disk_records import Files
from driver.preparing.files.prepared import PreparedClaim, lost_claim
from driver.preparing.files.records import MALFORMED

logger = logging.getLogger(__name__)

NAME = "claims-without-cdi-files.json"

UNREADABLE = NAME + ".unreadable-"
"""Start of the new name of a file that is not JSON; it stays for people to read. The name ends with
the boot id."""

RELEASES = 1000
"""How many of the latest releases are remembered: another driver that knew a claim writes its entry
within 10 s, when it checks the files."""

_Entries = list[Any]


class Rescue:
    """The file of these records in the driver's own folder."""

    def __init__(self, files: Files, boot_id: str) -> None:
        self._files = files
        self._aside = UNREADABLE + boot_id
        self._last_signature: object = None
        self._known: set[ClaimUid] = set()
        self._released: deque[ClaimUid] = deque(maxlen=RELEASES)
        self._kept: frozenset[ClaimUid] = frozenset()
        self._as_found: dict[ClaimUid, Any] = {}

    def has(self, uid: ClaimUid) -> bool:
        """Whether the file has an entry of this claim that this process read or wrote."""
        return uid in self._kept

    def problem(self) -> str:
        """Why the records of this boot are unknown; "" if they are known. Raises OSError."""
        if self._files.signature(self._aside) is None:
            return ""
        return f"{NAME} was not a list of claims in JSON, and was renamed to {self._aside}"

    def note_released(self, uid: ClaimUid) -> None:
        """Ignore entries of this claim by other processes: its devices are free."""
        self._released.append(uid)

    def peek(self) -> tuple[PreparedClaim, ...]:
        """The claims in the file, as a hint; () if it is not JSON. Raises OSError."""
        try:
            return tuple(filter(None, map(self._load, self._parsed())))
        except MALFORMED:
            return ()

    def found(self) -> tuple[PreparedClaim, ...]:
        """The claims that this process never read, wrote or released. Raises OSError.

        This process still knows the other claims, or they have ended. An unreadable entry gives a
        claim with its UID and boot alone.
        """
        signature = self._files.signature(NAME)
        if signature == self._last_signature:
            return ()
        entries = self._entries()
        others = self._of_others(entries)
        claims = tuple(filter(None, map(self._load, others)))
        self._last_signature = signature
        self._known |= {claim.reference.uid for claim in claims}
        self._kept = frozenset(uid for entry in entries if (uid := _uid_of(entry)))
        return claims

    def keep(self, claims: Iterable[PreparedClaim]) -> None:
        """Keep these claims of this process; remove the file if it would have no entry.

        Entries of other processes stay, unless `found` returned them, or this process released
        their claims.

        Raises:
            OSError: If that failed; the file is then unchanged.
        """
        before = self._entries()
        kept = tuple(claims)
        wanted = frozenset(claim.reference.uid for claim in kept)
        self._known |= wanted
        entries = [*self._of_others(before), *map(self._entry, kept)]
        if entries and entries != before:
            self._files.write(NAME, json.dumps({"claims": entries}).encode())
        elif not entries and self._files.signature(NAME) is not None:
            self._files.remove(NAME)
        self._kept = wanted

    def _of_others(self, entries: _Entries) -> _Entries:
        ours = self._known.union(self._released)
        return [entry for entry in entries if _uid_of(entry) not in ours]

    def _entry(self, claim: PreparedClaim) -> Any:
        as_found = self._as_found.get(claim.reference.uid) if claim.doubt else None
        return records.dump(claim) if as_found is None else as_found

    def _entries(self) -> _Entries:
        try:
            return self._parsed()
        except MALFORMED as error:
            logger.error("Renaming %s to %s: %r", NAME, self._aside, error)  # noqa: TRY400
            self._files.rename(NAME, self._aside)
            return []

    def _parsed(self) -> _Entries:
        if self._files.signature(NAME) is None:
            return []
        entries = json.loads(self._files.read(NAME) or b"")["claims"]
        if not isinstance(entries, list):
            raise TypeError(f"its claims are not a list, but of type {type(entries).__name__}")
        return entries

    def _load(self, entry: Any) -> PreparedClaim | None:
        """The claim of an entry; None for an entry without a UID, which stays in the file."""
        try:
            claim = records.load(entry)
        except MALFORMED:
            uid = _uid_of(entry)
            logger.exception("%s: the entry of claim %s is unreadable", NAME, uid or "?")
            boot = entry.get("bootID") if uid else None
            if uid is None or not isinstance(boot, str):
                return None
            claim = lost_claim(uid, boot)
        if claim.doubt:
            self._as_found[claim.reference.uid] = entry
        return claim


def _uid_of(entry: Any) -> ClaimUid | None:
    uid = entry.get("uid") if isinstance(entry, Mapping) else None
    return ClaimUid(uid) if isinstance(uid, str) else None
