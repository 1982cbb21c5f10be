"""The checkpoint comes back as it was written, or is told to be unreadable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ClaimUid, DeviceName, InstanceName, NodeName
from driver.devices import DeviceSpec, Mount
from driver.preparing.files import checkpoint
from driver.preparing.files.checkpoint import Unreadable
from driver.preparing.files.prepared import (
    AllocatedDevice,
    ClaimReference,
    PreparedClaim,
    PreparedClaims,
    PreparedDevice,
)
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_reference, prepared

CLAIMS: PreparedClaims = {r.uid: prepared(r) for r in (a_reference(1), a_reference(2))}

texts = st.text(max_size=20)
devices = st.builds(
    PreparedDevice,
    allocated=st.builds(
        AllocatedDevice,
        request=texts,
        pool=texts,
        device=texts.map(DeviceName),
        share_id=st.none() | texts,
        admin_access=st.booleans(),
    ),
    cdi_name=texts,
    instance=texts.map(InstanceName),
    hash=texts,
    properties=st.dictionaries(texts, st.text(alphabet=st.characters())),
    mounts=st.lists(st.builds(Mount), max_size=0).map(tuple)
    | st.tuples(st.builds(Mount, texts, texts, st.booleans())),
    device_specs=st.tuples(st.builds(DeviceSpec, texts, texts, texts)),
)
claims = st.builds(
    PreparedClaim,
    reference=st.builds(ClaimReference, texts, texts, texts.map(ClaimUid)),
    boot_id=texts,
    devices=st.lists(devices, max_size=3).map(tuple),
)


@given(st.lists(claims, max_size=4))
def test_claims_come_back_as_they_were(prepared_claims: list[PreparedClaim]) -> None:
    by_uid = {claim.reference.uid: claim for claim in prepared_claims}

    assert checkpoint.load(checkpoint.dump(by_uid, NODE), NODE) == by_uid


def test_same_claims_are_the_same_bytes() -> None:
    backwards = {uid: CLAIMS[uid] for uid in sorted(CLAIMS, reverse=True)}

    assert checkpoint.dump(CLAIMS, NODE) == checkpoint.dump(backwards, NODE)


def test_nothing_prepared_is_a_checkpoint_too() -> None:
    assert checkpoint.load(checkpoint.dump({}, NODE), NODE) == {}


def rewritten(change: dict[str, Any], *, checksum: bool = True) -> bytes:
    document = {**json.loads(checkpoint.dump(CLAIMS, NODE)), **change}
    if checksum:
        document["checksum"] = checkpoint.checksum_of(checkpoint.canonical(document["data"]))
    return json.dumps(document).encode()


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
    loaded = checkpoint.load(checkpoint.dump(CLAIMS, NodeName("node-b")), NODE)

    assert loaded == Unreadable("it is of node 'node-b'")


@given(st.data())
def test_no_torn_or_flipped_checkpoint_is_read_as_something_else(data: st.DataObject) -> None:
    text = checkpoint.dump(CLAIMS, NODE)
    end = data.draw(st.integers(0, len(text) - 1))
    flipped = bytes([text[end] ^ data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))])

    for damaged in (text[:end], text[:end] + flipped + text[end + 1 :]):
        loaded = checkpoint.load(damaged, NODE)
        assert isinstance(loaded, Unreadable) or loaded == CLAIMS


def test_fields_of_a_later_version_are_ignored() -> None:
    document = json.loads(checkpoint.dump(CLAIMS, NODE))
    document["data"]["later"] = 1
    document["data"]["claims"][0]["later"] = {"a": 1}
    document["data"]["claims"][0]["devices"][0]["later"] = [1]

    assert checkpoint.load(rewritten({"data": document["data"], "later": 1}), NODE) == CLAIMS


def test_checkpoint_of_version_1_is_read_for_ever() -> None:
    text = b"""{
     "version": 1,
     "checksum": "sha256:441f41bb577dff9481cb6d96904f1b17f772c443d9709ad74bb72201cb9ab62b",
     "data": {"node": "node-a", "claims": [{
       "namespace": "default", "name": "claim-1", "uid": "u-1", "bootID": "b-1",
       "devices": [{
         "request": "req", "pool": "node-a", "device": "cam", "shareID": null,
         "adminAccess": false, "cdiName": "u-1_cam", "instance": "cam-aaaaaa", "hash": "aaaaaa",
         "properties": {"URL": "x"},
         "mounts": [{"containerPath": "/a", "hostPath": "/b", "readOnly": true}],
         "deviceSpecs": [{"containerPath": "/c", "hostPath": "/d", "permissions": "rw"}]
       }]
     }]}}"""
    expected = PreparedClaim(
        reference=ClaimReference("default", "claim-1", ClaimUid("u-1")),
        boot_id="b-1",
        devices=(
            PreparedDevice(
                allocated=AllocatedDevice(request="req", pool=NODE, device=DeviceName("cam")),
                cdi_name="u-1_cam",
                instance=InstanceName("cam-aaaaaa"),
                hash="aaaaaa",
                properties={"URL": "x"},
                mounts=(Mount("/a", "/b"),),
                device_specs=(DeviceSpec("/c", "/d", "rw"),),
            ),
        ),
    )

    loaded = checkpoint.load(text, NODE)

    assert loaded == {"u-1": expected}
