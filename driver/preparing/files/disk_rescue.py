"""Records whose CDI files were removed and cannot be written again, kept until they can be.

The kubelet asks to prepare a claim once. So while the folder of CDI files is gone, what the driver
knows of prepared claims is the only record of them, and would end with its process. It is kept in
the driver's own folder meanwhile, and the next process begins with it. It holds no claim that has
a CDI file.

Each entry is read on its own. One that cannot be read, or that a newer driver wrote, is in doubt,
and stays as it is until its claim has ended. A process leaves entries alone that it never read:
another driver wrote them. But to a driver that knew a claim, the release by this one looks like a
file that was removed: such an entry of a claim that this process released goes.
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
"""Begins the name that such a file gets that is no JSON: it stays for people to read. The boot in
which it got that name ends it."""

RELEASES = 1000
"""How many releases are remembered, the latest ones: another driver that knew a claim writes its
entry within ten seconds, when it looks at the files."""

_Entries = list[Any]


class Rescue:
    """The file of such records in the driver's own folder."""

    def __init__(self, files: Files, boot_id: str) -> None:
        self._files = files
        self._aside = UNREADABLE + boot_id
        self._looked_at: object = None
        self._known: set[ClaimUid] = set()
        self._released: deque[ClaimUid] = deque(maxlen=RELEASES)
        self._kept: frozenset[ClaimUid] = frozenset()
        self._as_found: dict[ClaimUid, Any] = {}

    def has(self, uid: ClaimUid) -> bool:
        """Whether this process read or wrote an entry of a claim that is there still."""
        return uid in self._kept

    def problem(self) -> str:
        """Why it is not known what was kept in this boot; "" if it is. Raises OSError."""
        if self._files.signature(self._aside) is None:
            return ""
        return f"{NAME} was no list of claims in JSON, and is called {self._aside} now"

    def note_released(self, uid: ClaimUid) -> None:
        """Take no entry of this claim from other processes: its devices are free."""
        self._released.append(uid)

    def glance(self) -> tuple[PreparedClaim, ...]:
        """What is kept, for a hint: nothing where the file is no JSON. Raises OSError."""
        try:
            return tuple(filter(None, map(self._load, self._parsed())))
        except MALFORMED:
            return ()

    def found(self) -> tuple[PreparedClaim, ...]:
        """What other processes kept, and this one never read, wrote or released. Raises OSError.

        What it knew once it knows still, or the claim has ended. Of an entry that cannot be read as
        much is told as is known: its claim's UID and boot.
        """
        signature = self._files.signature(NAME)
        if signature == self._looked_at:
            return ()
        entries = self._entries()
        others = self._of_others(entries)
        claims = tuple(filter(None, map(self._load, others)))
        self._looked_at = signature
        self._known |= {claim.reference.uid for claim in claims}
        self._kept = frozenset(uid for entry in entries if (uid := _uid_of(entry)))
        return claims

    def keep(self, claims: Iterable[PreparedClaim]) -> None:
        """These are all that this process knows of; without any entry the file is removed.

        What others kept stays, unless `found` told it, or this process released it.

        Raises:
            OSError: If that failed; the file is then as it was.
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
            logger.error("%s is called %s from now on: %r", NAME, self._aside, error)  # noqa: TRY400
            self._files.rename(NAME, self._aside)
            return []

    def _parsed(self) -> _Entries:
        if self._files.signature(NAME) is None:
            return []
        entries = json.loads(self._files.read(NAME) or b"")["claims"]
        if not isinstance(entries, list):
            raise TypeError(f"its claims are no list but of type {type(entries).__name__}")
        return entries

    def _load(self, entry: Any) -> PreparedClaim | None:
        """None for one that tells no claim; it stays in the file."""
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
