"""Records come back as they were written, whatever version wrote them, or are unreadable."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ClaimUid, DeviceName, InstanceName
from driver.devices import DeviceSpec, Mount
from driver.preparing.files import cdi, records
from driver.preparing.files.prepared import (
    AllocatedDevice,
    ClaimReference,
    Home,
    PreparedClaim,
    PreparedDevice,
)
from driver.preparing.files.records import MALFORMED, Unreadable
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_reference, prepared
from tests.driver.earlier_files import earlier_cdi_file, newer_cdi_file

CLAIM = prepared(a_reference(1))
UID = CLAIM.reference.uid

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
    nodes=st.frozensets(texts),
    capacity=st.integers(1, 100),
)
claims = st.builds(
    PreparedClaim,
    reference=st.builds(ClaimReference, texts, texts, texts.map(ClaimUid)),
    boot_id=texts,
    devices=st.lists(devices, max_size=3).map(tuple),
    home=st.builds(Home, texts, texts),
)


@given(claims)
def test_record_comes_back_as_it_was(claim: PreparedClaim) -> None:
    assert records.load(json.loads(json.dumps(records.dump(claim)))) == claim


@given(st.data())
def test_no_torn_or_flipped_file_is_read_as_another_claims(data: st.DataObject) -> None:
    text = cdi.dump(CLAIM)
    end = data.draw(st.integers(0, len(text) - 1))
    flipped = bytes([text[end] ^ data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))])

    for damaged in (text[:end], text[:end] + flipped + text[end + 1 :]):
        loaded = cdi.load(damaged, UID)
        assert isinstance(loaded, Unreadable) or loaded.reference.uid == UID


def test_fields_of_a_later_version_are_ignored() -> None:
    record = records.dump(CLAIM)
    record["later"] = {"a": 1}
    record["devices"][0]["later"] = [1]

    assert records.load(record) == CLAIM


def test_record_without_a_version_is_of_no_known_node_and_cluster() -> None:
    loaded = cdi.load(earlier_cdi_file(CLAIM), UID)

    assert loaded == replace(CLAIM, home=Home())
    assert not loaded.doubt


def test_newer_record_is_read_as_far_as_possible() -> None:
    loaded = cdi.load(newer_cdi_file(CLAIM, later=1), UID)

    assert loaded == replace(CLAIM, version=2)
    assert loaded.doubt == "is of version 2, and this driver reads 1"


def test_newer_record_that_says_it_otherwise_is_of_a_claim_of_which_nothing_is_known() -> None:
    loaded = cdi.load(newer_cdi_file(CLAIM, devices={"by": "name"}), UID)

    assert isinstance(loaded, PreparedClaim)
    assert (loaded.reference.uid, loaded.version, loaded.devices) == (UID, 2, ())


@pytest.mark.parametrize(
    "change",
    [{"devices": None}, {"devices": [{}]}, {"version": "2"}, {"version": None}],
)
def test_what_is_no_record_raises_what_readers_expect(change: dict[str, Any]) -> None:
    with pytest.raises(MALFORMED):
        records.load({**records.dump(CLAIM), **change})


def test_record_of_the_earlier_driver_is_read_for_as_long_as_one_may_be_updated_from_it() -> None:
    text = """{
       "namespace": "default", "name": "claim-1", "uid": "u-1", "bootID": "b-1",
       "devices": [{
         "request": "req", "pool": "node-a", "device": "cam", "shareID": null,
         "adminAccess": false, "cdiName": "u-1_cam", "instance": "cam-aaaaaa", "hash": "aaaaaa",
         "properties": {"URL": "x"},
         "mounts": [{"containerPath": "/a", "hostPath": "/b", "readOnly": true}],
         "deviceSpecs": [{"containerPath": "/c", "hostPath": "/d", "permissions": "rw"}]
       }]
     }"""
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

    assert records.load(json.loads(text)) == expected
