"""Files as the driver wrote them that had a checkpoint: its records have no version and no UIDs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from driver.api import NodeName
from driver.preparing.files import cdi, checkpoint, records
from driver.preparing.files.prepared import PreparedClaim
from tests.driver.builders import NODE

LATER = ("version", "nodeUID", "clusterUID")


def earlier_record(claim: PreparedClaim) -> dict[str, Any]:
    """Of a checkpoint, or of a CDI file."""
    return {name: value for name, value in records.dump(claim).items() if name not in LATER}


def earlier_checkpoint(claims: Iterable[PreparedClaim], node: NodeName = NODE) -> bytes:
    data = {"node": node, "claims": [earlier_record(claim) for claim in claims]}
    document = {"version": 1, "checksum": checkpoint.checksum_of(data), "data": data}
    return json.dumps(document).encode()


def with_record(text: bytes, record: dict[str, Any]) -> bytes:
    """A CDI file with another record of its claim."""
    document = json.loads(text)
    (edits,) = (d["containerEdits"] for d in document["devices"] if d["name"].endswith("_record"))
    edits["env"] = [f"{cdi.RECORD_VARIABLE}={json.dumps(record, sort_keys=True)}"]
    return cdi.encoded(document)


def earlier_cdi_file(claim: PreparedClaim) -> bytes:
    return with_record(cdi.dump(claim), earlier_record(claim))


def newer_cdi_file(claim: PreparedClaim, **fields: Any) -> bytes:
    """As a driver might write it that comes after this one."""
    return with_record(cdi.dump(claim), {**records.dump(claim), "version": 2, **fields})
