"""The files of device metadata on the node's disk.

An existing file is written in place: containers have it bind-mounted, and would not see a new file
of its name. So containers read the current location of a device, also if they started before it
moved.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from driver.instances.instances import Instance
from driver.plumbing.disk import Folder, is_temporary, remove_abandoned, temporary_in
from driver.preparing.files import metadata
from driver.preparing.files.metadata import Known
from driver.preparing.files.prepared import PreparedClaim

logger = logging.getLogger(__name__)

_FOLDER_MODE, _FILE_MODE = 0o700, 0o644
"""Containers of any user can read the file; other users of the host cannot reach it."""


_Kept = tuple[PreparedClaim, tuple[Instance | None, ...]]
"""The claim and the Instances that a file was made of."""


class MetadataFiles:
    """A folder with a file for each request of each prepared claim."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = f"{folder}/"  # `Path` is slow
        self._kept: dict[str, _Kept] = {}

    def path(self, claim: PreparedClaim, request: str) -> str:
        """The path of a request's file on the host."""
        return self._prefix + metadata.file_name(claim.reference.uid, request)

    def keep(self, claim: PreparedClaim, known: Known) -> None:
        """Bring a claim's files up to date.

        Raises:
            OSError: If a file cannot be written; the other files may be written.
        """
        for request in metadata.requests(claim):
            self._keep(claim, request, known)

    def _keep(self, claim: PreparedClaim, request: str, known: Known) -> None:
        path = self.path(claim, request)
        is_there = os.path.exists(path)
        allocated = (d.allocated for d in claim.devices if d.allocated.request == request)
        kept = claim, tuple(known(device) for device in allocated)
        if is_there and (None in kept[1] or self._kept.get(path) == kept):
            return  # an unknown Instance is not absent
        contents = metadata.contents(claim, request, known)
        if is_there:
            _renew(path, claim, contents)
        else:
            self._create(path, metadata.dump(claim, contents, 1))
        self._kept[path] = kept

    def _create(self, path: str, text: bytes) -> None:
        try:
            _create(path, text)
        except FileNotFoundError:
            self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            _create(path, text)

    def problem(self) -> str:
        """A part of a sentence: why no file can be written; "" for no problem."""
        try:
            self._folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            return str(error)
        return Folder(self._folder).problem(thoroughly=True)

    def remove(self, claim: PreparedClaim) -> None:
        """Remove a claim's files; missing files are fine.

        Raises:
            OSError: If a file cannot be removed.
        """
        for request in metadata.requests(claim):
            path = self.path(claim, request)
            with suppress(FileNotFoundError):
                os.unlink(path)
            self._kept.pop(path, None)

    def tidy(self, claims: Iterable[PreparedClaim]) -> None:
        """Remove files of other claims, and temporary files of killed processes."""
        remove_abandoned(str(self._folder))
        wanted = {self.path(claim, r) for claim in claims for r in metadata.requests(claim)}
        for path in self._folder.glob("*"):
            if str(path) not in wanted and not is_temporary(path.name):
                logger.warning("Device metadata %s is of no prepared claim; removing", path.name)
                path.unlink(missing_ok=True)


def _renew(path: str, claim: PreparedClaim, contents: dict[str, Any]) -> None:
    contents_before, generation = metadata.load(before := Path(path).read_bytes())
    if contents_before != contents:
        text = metadata.dump(claim, contents, generation + 1)
        _overwrite(path, text.ljust(len(before)))


def _overwrite(path: str, text: bytes) -> None:
    """Write in one step, so that a reader rarely sees half of it; spaces fill the old length."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, text, 0)
    finally:
        os.close(descriptor)


def _create(path: str, text: bytes) -> None:
    temporary = temporary_in(os.path.dirname(path))
    try:
        with open(temporary, "xb") as file:
            file.write(text)
            os.fchmod(file.fileno(), _FILE_MODE)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
