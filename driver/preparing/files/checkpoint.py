"""The checkpoint of the driver before this one, which kept all claims of a node in one file.

    {"version": 1, "checksum": "sha256:…", "data": {"node": "…", "claims": [{…}, …]}}

It is taken over once and removed, see `disk_checkpoint`. An earlier driver that still runs, or runs
again, writes its checkpoint anew from the CDI files, whose records it can read.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from driver.api import NodeName
from driver.preparing.files import records
from driver.preparing.files.prepared import PreparedClaims
from driver.preparing.files.records import MALFORMED, Unreadable

NAME = "checkpoint.json"

LEFTOVER_PREFIXES = (f"{NAME}.corrupt-", f".{NAME}.")
"""Start of the names of its unreadable and its half-written files."""

_VERSION = 1

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def checksum_of(data: Any) -> str:
    """The checksum of a JSON value, independent of its formatting."""
    return f"sha256:{hashlib.sha256(_encode(data).encode()).hexdigest()}"


def load(text: bytes, node: NodeName) -> PreparedClaims | Unreadable:
    """The claims of a checkpoint."""
    try:
        document = json.loads(text)
        if (version := document["version"]) != _VERSION:
            return Unreadable(f"its version is {version!r}, and this driver reads {_VERSION}")
        data = document["data"]
        if document["checksum"] != checksum_of(data):
            return Unreadable("its checksum is wrong")
        if data["node"] != node:
            return Unreadable(f"it is of node {data['node']!r}")
        claims = map(records.load, data["claims"])
        return {claim.reference.uid: claim for claim in claims}
    except MALFORMED as error:
        return Unreadable(f"it is no checkpoint: {error!r}")
