"""Records whose CDI files were removed and cannot be written again, kept until they can be.

The kubelet asks to prepare a claim once. So while the folder of CDI files is gone, what the driver
knows of prepared claims is the only record of them, and would end with its process. It is kept in
the driver's own folder meanwhile, and the next process begins with it. It holds no claim that has
a CDI file, and nothing new is granted while there is one: a write of that file would fail.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from driver.preparing.files import records
from driver.preparing.files.disk_records import Files
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.files.records import MALFORMED

logger = logging.getLogger(__name__)

NAME = "claims-without-cdi-files.json"


class Rescue:
    """The file of such records in the driver's own folder."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: tuple[PreparedClaim, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether this process keeps any."""
        return bool(self._kept)

    def claims(self) -> tuple[PreparedClaim, ...]:
        """What is kept, be it another process's; nothing of an unreadable file. Raises OSError."""
        if self._files.signature(NAME) is None:
            return ()
        try:
            return tuple(map(records.load, json.loads(self._files.read(NAME) or b"")["claims"]))
        except MALFORMED:
            logger.exception("%s is unreadable, and left out", NAME)
            return ()

    def keep(self, claims: Iterable[PreparedClaim]) -> None:
        """These are all that have no file; without any, the file is removed. Raises OSError."""
        kept = tuple(claims)
        if kept and kept != self._kept:
            content = {"claims": [records.dump(claim) for claim in kept]}
            self._files.write(NAME, json.dumps(content).encode())
        elif not kept and self._files.signature(NAME) is not None:
            self._files.remove(NAME)
        self._kept = kept
