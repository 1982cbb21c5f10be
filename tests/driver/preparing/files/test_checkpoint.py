"""The checkpoint of the earlier driver is read, or is told to be unreadable."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import NodeName
from driver.preparing.files import checkpoint
from driver.preparing.files.prepared import Home
from driver.preparing.files.records import Unreadable
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_reference, prepared
from tests.driver.earlier_files import earlier_checkpoint

CLAIMS = {r.uid: replace(prepared(r), home=Home()) for r in (a_reference(1), a_reference(2))}
TEXT = earlier_checkpoint(CLAIMS.values())


def rewritten(change: dict[str, Any], *, checksum: bool = True) -> bytes:
    document = {**json.loads(TEXT), **change}
    if checksum:
        document["checksum"] = checkpoint.checksum_of(document["data"])
    return json.dumps(document).encode()


def test_its_claims_are_of_no_known_node_and_cluster() -> None:
    assert checkpoint.load(TEXT, NODE) == CLAIMS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it is no checkpoint: JSONDecodeError"),
        (b"null", "it is no checkpoint: TypeError"),
        (b"{}", "it is no checkpoint: KeyError"),
        (b"\xff\xfe", "it is no checkpoint: "),
        (b"[" * 100_000, "it is no checkpoint: "),
        (rewritten({"version": 2}), "its version is 2, and this driver reads 1"),
        (rewritten({"data": {}}), "it is no checkpoint: KeyError('node')"),
        (rewritten({"data": []}), "it is no checkpoint: TypeError"),
        (rewritten({"data": {"node": NODE, "claims": [{}]}}), "it is no checkpoint: KeyError"),
        (rewritten({"data": {"node": NODE}}, checksum=False), "its checksum is wrong"),
    ],
)
def test_what_cannot_be_believed_is_told(text: bytes, reason: str) -> None:
    loaded = checkpoint.load(text, NODE)

    assert isinstance(loaded, Unreadable)
    assert loaded.reason.startswith(reason)


def test_checkpoint_of_another_node_is_not_ours() -> None:
    loaded = checkpoint.load(earlier_checkpoint(CLAIMS.values(), NodeName("node-b")), NODE)

    assert loaded == Unreadable("it is of node 'node-b'")


@given(st.data())
def test_no_torn_or_flipped_checkpoint_is_read_as_something_else(data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(TEXT) - 1))
    flipped = bytes([TEXT[end] ^ data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))])

    for damaged in (TEXT[:end], TEXT[:end] + flipped + TEXT[end + 1 :]):
        loaded = checkpoint.load(damaged, NODE)
        assert isinstance(loaded, Unreadable) or loaded == CLAIMS
