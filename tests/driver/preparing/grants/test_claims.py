"""What of an allocation is this node's to prepare, and whether it may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from driver.api import ClaimUid, DeviceName
from driver.devices import DeviceSpec, Mount
from driver.preparing.files.prepared import AllocatedDevice, ClaimReference, PreparedClaim
from driver.preparing.grants.claims import (
    AllocatedClaim,
    Failure,
    Instances,
    allocated_claim,
    plan_prepare,
    reference_problem,
)
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_claim,
    a_reference,
    a_result,
    allocated,
    an_instance,
    prepared,
    some_instances,
)

WANTED = a_reference(1)
OTHER = a_reference(2)
SHARE, OTHER_SHARE = (f"0000000{n}-aaaa-4000-8000-000000000000" for n in (1, 2))
SAID = "default/claim-1 (UID 00000001-0000-4000-8000-000000000000)"


def changed(claim: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {**claim, "status": status}


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (None, f"ResourceClaim {SAID} does not exist"),
        (
            a_claim(replace(OTHER, name="claim-1")),
            f"ResourceClaim {SAID} was replaced by one with UID {OTHER.uid}",
        ),
        (changed(a_claim(WANTED)), f"ResourceClaim {SAID} is not allocated"),
        (changed(a_claim(WANTED), allocation=None), f"ResourceClaim {SAID} is not allocated"),
        (
            a_claim(WANTED, a_result(driver="gpu.example.com")),
            f"ResourceClaim {SAID} has no device of moorage.dev",
        ),
        (
            changed(a_claim(WANTED), allocation={"devices": {}}),
            f"ResourceClaim {SAID} has no device of moorage.dev",
        ),
        (
            a_claim(WANTED, a_result(pool="node-b"), a_result()),
            f"ResourceClaim {SAID} has devices of other nodes' pools: node-b",
        ),
    ],
)
def test_claim_that_is_not_ours_to_prepare(claim: Mapping[str, Any] | None, sentence: str) -> None:
    assert allocated_claim(claim, WANTED, {NODE}) == Failure(sentence)


def test_only_our_part_of_an_allocation_is_read() -> None:
    claim = a_claim(
        WANTED,
        a_result("gpu-0", driver="gpu.example.com", pool="elsewhere"),
        a_result("loop-aaaaaa", "either/second", shareID=SHARE),
        a_result("onvif-bbbbbb", "watch", pool="onvif", adminAccess=True, tolerations=[{}]),
    )

    assert allocated_claim(claim, WANTED, {NODE, "onvif"}) == AllocatedClaim(
        WANTED,
        (
            AllocatedDevice(
                request="either", pool=NODE, device=DeviceName("loop-aaaaaa"), share_id=SHARE
            ),
            AllocatedDevice(
                request="watch",
                pool="onvif",
                device=DeviceName("onvif-bbbbbb"),
                admin_access=True,
            ),
        ),
    )


@pytest.mark.parametrize("uid", ["", "../../etc/passwd", "a/b", "a b", ".", "x" * 64, "a_b"])
def test_what_is_no_uid_never_becomes_part_of_a_path(uid: str) -> None:
    problem = reference_problem(ClaimReference("default", "claim", ClaimUid(uid)))

    assert problem == Failure(f"ResourceClaim UID {uid!r} is not a UID")


@pytest.mark.parametrize(("namespace", "name"), [("", "claim"), ("default", "")])
def test_reference_without_a_name_is_refused(namespace: str, name: str) -> None:
    problem = reference_problem(ClaimReference(namespace, name, WANTED.uid))

    assert problem == Failure(f"ResourceClaim {WANTED.uid} is named without namespace or name")


def test_device_gets_what_its_instance_has() -> None:
    instance = an_instance(mounts=(Mount("/in", "/out"),))

    claim = plan_prepare(allocated(WANTED), some_instances(instance), {}, BOOT)

    assert not isinstance(claim, Failure)
    (device,) = claim.devices
    assert (claim.reference, claim.boot_id) == (WANTED, BOOT)
    assert device.cdi_name == f"{WANTED.uid}_req_node-a_loop-aaaaaa"
    assert (device.instance, device.hash) == ("loop-aaaaaa", "aaaaaa")
    assert device.properties == instance.properties
    assert device.mounts == instance.mounts
    assert device.device_specs == instance.device_specs


def test_slots_of_one_instance_are_devices_of_their_own() -> None:
    instance = an_instance(capacity=2, unique_devices=False)
    instances: Instances = {(NODE, DeviceName(f"loop-aaaaaa-{slot}")): instance for slot in (0, 1)}
    results = [a_result("loop-aaaaaa-0"), a_result("loop-aaaaaa-1")]

    claim = plan_prepare(allocated(WANTED, *results), instances, {}, BOOT)

    assert not isinstance(claim, Failure)
    assert [device.instance for device in claim.devices] == ["loop-aaaaaa"] * 2
    assert len({device.cdi_name for device in claim.devices}) == 2


def test_one_device_may_be_in_a_claim_under_two_shares_and_in_two_requests() -> None:
    results = [
        a_result(request="a", shareID=SHARE),
        a_result(request="b", shareID=OTHER_SHARE),
        a_result(request="c", adminAccess=True),
    ]

    claim = prepared(WANTED, *results)

    assert len({device.cdi_name for device in claim.devices}) == 3


def test_pools_with_a_slash_stay_apart_in_cdi_names() -> None:
    pools = ("site/onvif", "site.onvif", "site")
    instances = {(pool, DeviceName("cam")): an_instance("cam-aaaaaa") for pool in pools}
    claim = a_claim(WANTED, *(a_result("cam", pool=pool) for pool in pools))
    parsed = allocated_claim(claim, WANTED, pools)
    assert isinstance(parsed, AllocatedClaim)

    planned = plan_prepare(parsed, instances, {}, BOOT)

    assert not isinstance(planned, Failure)
    names = {device.cdi_name for device in planned.devices}
    assert names == {f"{WANTED.uid}_req_{p}_cam" for p in ("site:onvif", "site.onvif", "site")}


def test_first_instance_by_name_comes_last() -> None:
    names = ["cam-bbbbbb", "cam-aaaaaa", "cam-cccccc"]
    instances = some_instances(*map(an_instance, names))

    claim = prepared(WANTED, *map(a_result, names), instances=instances)

    assert [d.instance for d in claim.devices] == ["cam-cccccc", "cam-bbbbbb", "cam-aaaaaa"]


@pytest.mark.parametrize(
    ("instance", "sentence"),
    [
        (an_instance("loop-bbbbbb"), "device node-a/loop-aaaaaa is not known on this node"),
        (an_instance(online=False), "device node-a/loop-aaaaaa is offline"),
        (
            an_instance(device_specs=(DeviceSpec("", "/dev/x"),)),
            'device node-a/loop-aaaaaa has a device node whose path in the container, "", is not'
            " absolute",
        ),
        (
            an_instance(device_specs=(DeviceSpec("/dev/x", "/dev/x", "all"),)),
            'device node-a/loop-aaaaaa has the device node "/dev/x" with permissions "all", which'
            " are not some of rwm, such as r or rw",
        ),
        (
            an_instance(mounts=(Mount("/x", "x"),)),
            'device node-a/loop-aaaaaa has a mount whose path on the host, "x", is not absolute',
        ),
    ],
)
def test_device_that_cannot_be_given_out(instance: Any, sentence: str) -> None:
    planned = plan_prepare(allocated(WANTED), some_instances(instance), {}, BOOT)

    assert planned == Failure(sentence)


def test_prepared_claim_is_answered_as_it_was_renewed_last() -> None:
    known = prepared(WANTED)

    assert plan_prepare(allocated(WANTED), {}, {WANTED.uid: known}, BOOT) is known


def test_prepared_claim_is_refused_while_a_device_of_it_is_withheld() -> None:
    known = prepared(WANTED)
    away = replace(known.devices[0], device_specs=(), withheld="is offline")
    withheld = {WANTED.uid: replace(known, devices=(away,))}

    planned = plan_prepare(allocated(WANTED), some_instances(), withheld, BOOT)

    assert planned == Failure("device node-a/loop-aaaaaa is offline")


def test_claim_that_was_allocated_anew_gets_its_new_device() -> None:
    known = prepared(WANTED)
    instances = some_instances(an_instance("loop-bbbbbb"))

    claim = plan_prepare(
        allocated(WANTED, a_result("loop-bbbbbb")), instances, {WANTED.uid: known}, BOOT
    )

    assert not isinstance(claim, Failure)
    assert [device.instance for device in claim.devices] == ["loop-bbbbbb"]


@pytest.mark.parametrize(
    ("held", "wanted", "is_refused"),
    [
        ({}, {}, True),
        ({"shareID": SHARE}, {"shareID": OTHER_SHARE}, False),
        ({}, {"shareID": SHARE}, True),
        ({"shareID": SHARE}, {}, True),
        ({"adminAccess": True}, {}, False),
        ({}, {"adminAccess": True}, False),
        ({"adminAccess": True}, {"adminAccess": True}, False),
    ],
)
def test_exclusive_device_is_prepared_for_one_claim(
    held: dict[str, Any], wanted: dict[str, Any], is_refused: bool
) -> None:
    holder = prepared(OTHER, a_result(**held))

    planned = plan_prepare(
        allocated(WANTED, a_result(**wanted)), some_instances(), {OTHER.uid: holder}, BOOT
    )

    sentence = f"device node-a/loop-aaaaaa is still prepared for ResourceClaim {OTHER}"
    refusal = Failure(sentence)
    assert (planned == refusal) is is_refused


def test_device_of_the_same_name_in_another_pool_is_another() -> None:
    holder = prepared(OTHER)
    instances = {("onvif", DeviceName("loop-aaaaaa")): an_instance()}
    claim = allocated_claim(a_claim(WANTED, a_result(pool="onvif")), WANTED, {"onvif"})
    assert isinstance(claim, AllocatedClaim)

    assert not isinstance(plan_prepare(claim, instances, {OTHER.uid: holder}, BOOT), Failure)


def test_two_devices_of_a_request_at_one_container_path_are_refused() -> None:
    here = DeviceSpec("/dev/camera", "/dev/video0", "rw")
    there = DeviceSpec("/dev/camera", "/dev/video1", "rw")
    instances = some_instances(
        an_instance("cam-aaaaaa", device_specs=(here,)),
        an_instance("cam-bbbbbb", device_specs=(there,)),
    )
    one = allocated(WANTED, a_result("cam-aaaaaa"), a_result("cam-bbbbbb"))
    two = allocated(WANTED, a_result("cam-aaaaaa", "left"), a_result("cam-bbbbbb", "right"))

    assert plan_prepare(one, instances, {}, BOOT) == Failure(
        "/dev/video0 of device node-a/cam-aaaaaa and /dev/video1 of device node-a/cam-bbbbbb"
        " would both be /dev/camera in the container"
    )
    assert isinstance(plan_prepare(two, instances, {}, BOOT), PreparedClaim)
