"""The records of prepared claims on disk: a CDI file for each, and memory that follows the files.

A file whose device moved, and that cannot be written anew, is withheld: it gets a name that no
runtime reads, which takes no room on a full disk, and keeps its record.

A file that is not there was removed by another driver, which released the claim, or by somebody
else, who released nothing: then memory has the record still, and the file is written again. Which
of the two it was the lock tells, in which no other driver was since. A record of which not all is
known cannot be written: without its file it is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from driver.api import ClaimUid
from driver.preparing.files import cdi
from driver.preparing.files.prepared import VERSION, PreparedClaim, PreparedClaims, lost_claim
from driver.preparing.files.records import Unreadable

logger = logging.getLogger(__name__)


class Files(Protocol):
    """A folder of files that are replaced whole or not at all; see `disk.Folder`."""

    def names(self) -> list[str]: ...
    def problem(self, *, thoroughly: bool = False) -> str: ...
    def read(self, name: str) -> bytes | None: ...
    def signature(self, name: str) -> object: ...
    def write(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def rename(self, name: str, other: str) -> None: ...


class RecordFiles:
    """The records of a node.

    Attributes:
        claims: What is prepared in this boot, as the files say.
        doubtful: Those of which not all is known, see `PreparedClaim.doubt`.
    """

    def __init__(
        self, files: Files, boot_id: str, dump: Callable[[PreparedClaim], bytes] = cdi.dump
    ) -> None:
        """`dump` makes the content of a claim's file."""
        self.claims: PreparedClaims = {}
        self.doubtful: Mapping[ClaimUid, PreparedClaim] = {}
        self._files = files
        self._boot_id = boot_id
        self._dump = dump
        self._seen: dict[str, tuple[object, PreparedClaim]] = {}

    @property
    def withheld(self) -> tuple[ClaimUid, ...]:
        """Claims whose files are withheld until they can be written."""
        return tuple(uid for uid in self.claims if cdi.withheld_name(uid) in self._seen)

    @property
    def lost(self) -> tuple[ClaimUid, ...]:
        """Claims that are known, and have no file as far as `look` saw."""
        seen = self._seen.keys()
        return tuple(
            uid
            for uid, claim in self.claims.items()
            if not claim.doubt
            if cdi.file_name(uid) not in seen and cdi.withheld_name(uid) not in seen
        )

    def look(self) -> tuple[ClaimUid, ...]:
        """Those claims, by a look at the folder, which no other driver changed. Raises OSError."""
        for gone in self._seen.keys() - frozenset(self._files.names()):
            del self._seen[gone]
        return self.lost

    def problem(self, *, thoroughly: bool = False) -> str:
        """Why files cannot be written; "" if nothing speaks for that."""
        return self._files.problem(thoroughly=thoroughly)

    def read(self, *, is_foreign: bool = True) -> None:
        """Read what other processes wrote. Raises OSError.

        Args:
            is_foreign: Whether another driver may have released claims since. No driver removes
                the folder, so one that is gone releases none.
        """
        is_released = is_foreign and self.claims and not self.problem()
        known: PreparedClaims = {} if is_released else self.claims
        ours = ((name, uid) for name in self._files.names() if (uid := cdi.claim_of(name)))
        found = {name: seen for name, uid in ours if (seen := self._look(name, uid))}
        claims: dict[ClaimUid, PreparedClaim] = {}
        for _, claim in found.values():  # of two files of a claim the withheld one is the older
            if claim.boot_id == self._boot_id:
                claims.setdefault(claim.reference.uid, claim)
        for uid, claim in known.items():
            if not claim.doubt:
                claims.setdefault(uid, claim)
        self._seen = found
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

    def put(self, claim: PreparedClaim) -> None:
        """Write a claim's file, unless it is that already. Raises OSError."""
        uid = claim.reference.uid
        name = cdi.file_name(uid)
        if claim.version <= VERSION and self._seen.get(name) != self._as_now(name, claim):
            self._files.write(name, self._dump(claim))
            self._seen[name] = self._as_now(name, claim)
        if self._seen.pop(withheld := cdi.withheld_name(uid), None):
            self._files.remove(withheld)
        if self.claims.get(uid) is not claim:
            self.hold(claim)

    def _as_now(self, name: str, claim: PreparedClaim) -> tuple[object, PreparedClaim]:
        return self._files.signature(name), claim

    def hold(self, claim: PreparedClaim) -> None:
        """Know a claim though its file cannot be written; `read` forgets it."""
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
        """Let no container be started with a file. Raises OSError."""
        name, withheld = cdi.file_name(uid), cdi.withheld_name(uid)
        if name in self._seen:
            self._files.rename(name, withheld)
            del self._seen[name]
            self._seen[withheld] = self._as_now(withheld, self.claims[uid])

    def tidy(self) -> None:
        """Remove what is of an earlier boot, and write anew what is not as it should be.

        What a newer driver wrote is left alone, and what is withheld stays so until it is planned.
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
                logger.exception("CDI file %s cannot be put right", name)

    def _put_right(self, name: str, claim: PreparedClaim) -> None:
        if claim.doubt or name != cdi.file_name(claim.reference.uid):
            return
        if self._files.read(name) != self._dump(claim):
            logger.warning("CDI file %s differs from what it should be; writing it anew", name)
            self._seen.pop(name, None)
            self.put(claim)
