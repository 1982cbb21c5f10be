"""One device through two Configurations: which claims may have it at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver.instances.instances import Instance
from driver.instances.rivals import with_nodes
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure, plan_prepare
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import renew
from tests.driver.claim_builders import (
    BOOT,
    a_reference,
    a_result,
    allocated,
    an_instance,
    prepared,
    some_instances,
)
from tests.driver.instances.test_rivals import a_node

WANTED, OTHER = a_reference(1), a_reference(2)
SHARE = "11111111-2222-4333-8444-555555555555"


def of(name: str, path: str, *, number: str = "", **fields: Any) -> Instance:
    """An Instance at a path, with what tells its device node."""
    (found,) = with_nodes([a_node(name, path, number=number, **fields)])
    return found


def planned(
    wanted: Instance, held: Instance, result: dict[str, Any] | None = None, **holds: Any
) -> PreparedClaim | Failure:
    """A claim for one while another claim has the other."""
    holder = prepared(OTHER, a_result(held.name, **holds), instances=some_instances(held))
    claim = allocated(WANTED, result or a_result(wanted.name))
    return plan_prepare(claim, some_instances(wanted), {OTHER.uid: holder}, BOOT)


def is_taken(answer: PreparedClaim | Failure) -> bool:
    return isinstance(answer, Failure) and "is still prepared for" in answer.sentence


def test_a_device_is_refused_that_a_claim_has_through_another_configuration() -> None:
    refusal = planned(of("disks-aaaaaa", "/dev/sdb"), of("ssds-bbbbbb", "/dev/sdb"))

    assert refusal == Failure(
        "device node-a/disks-aaaaaa of Configuration disks is at /dev/sdb, as is device"
        " node-a/ssds-bbbbbb of Configuration ssds, which is still prepared for ResourceClaim"
        f" {OTHER}"
    )


def test_a_device_is_the_same_by_its_number_whatever_its_path() -> None:
    wanted = of("disks-aaaaaa", "/dev/mine", number="b8:16")

    assert is_taken(planned(wanted, of("ssds-bbbbbb", "/dev/sdb", number="b8:16")))
    assert isinstance(planned(wanted, of("ttys-bbbbbb", "/dev/tty", number="c8:16")), PreparedClaim)


def test_two_functions_of_one_camera_are_two_devices() -> None:
    first = of("cameras-aaaaaa", "/dev/video0", number="c81:0")
    second = of("sensors-bbbbbb", "/dev/video1", number="c81:1")

    assert isinstance(planned(first, second), PreparedClaim)


def test_devices_on_the_network_never_conflict_by_their_nodes() -> None:
    one, two = (
        an_instance(name, device_specs=(), properties={"URL": "rtsp://10.0.0.1"})
        for name in ("cameras-aaaaaa", "streams-bbbbbb")
    )

    assert isinstance(planned(one, two), PreparedClaim)


def test_what_a_handler_tells_apart_in_one_configuration_is_apart() -> None:
    one, two = of("gpus-aaaaaa", "/dev/gpu0"), of("gpus-bbbbbb", "/dev/gpu0")

    assert isinstance(planned(one, two), PreparedClaim)


@pytest.mark.parametrize(
    ("wanted", "held", "is_refused"),
    [
        ({}, {}, True),
        ({"adminAccess": True}, {}, False),
        ({}, {"adminAccess": True}, False),
        ({"capacity": 2, "shareID": SHARE}, {}, True),
        ({}, {"capacity": 2, "shareID": SHARE}, True),
        ({"capacity": 2, "shareID": SHARE}, {"capacity": 2, "shareID": SHARE}, False),
        # The slots that a device keeps of more, see `publishing.desired.slices`.
        ({"capacity": 2, "shareID": SHARE}, {"shareID": SHARE}, True),
        ({"shareID": SHARE}, {"capacity": 2, "shareID": SHARE}, True),
        # A device for each slot, as on Kubernetes 1.34.
        ({"capacity": 2}, {}, True),
        ({}, {"capacity": 2}, True),
        ({"capacity": 2}, {"capacity": 2}, False),
        ({"capacity": 2}, {"capacity": 2, "shareID": SHARE}, False),
    ],
)
def test_only_what_both_configurations_share_is_given_through_both(
    wanted: dict[str, Any], held: dict[str, Any], is_refused: bool
) -> None:
    asked, has = dict(wanted), dict(held)
    mine = of("disks-aaaaaa", "/dev/sdb", capacity=asked.pop("capacity", 1))
    theirs = of("ssds-bbbbbb", "/dev/sdb", capacity=has.pop("capacity", 1))

    answer = planned(mine, theirs, a_result(mine.name, **asked), **has)

    assert is_taken(answer) is is_refused


def test_what_an_earlier_driver_prepared_is_judged_by_its_paths() -> None:
    holder = prepared(OTHER, a_result("ssds-bbbbbb"), instances=some_instances(HELD))
    (device,) = holder.devices
    old = replace(holder, devices=(replace(device, nodes=frozenset(), capacity=1),))

    answer = plan_prepare(
        allocated(WANTED, a_result(MINE.name)), some_instances(MINE), {OTHER.uid: old}, BOOT
    )

    assert is_taken(answer)


def test_a_claim_that_asks_for_one_device_twice_is_kept_from_it_by_either_way() -> None:
    shared, alone = of("logs-aaaaaa", "/dev/sdb", capacity=2), of("disks-bbbbbb", "/dev/sdb")
    share = a_result(shared.name, shareID=SHARE)
    holder = prepared(OTHER, share, instances=some_instances(shared))
    both = [a_result(shared.name, shareID="another"), a_result(alone.name, "second")]

    for results in (both, both[::-1]):
        claim = allocated(WANTED, *results)
        known = some_instances(shared, alone)
        assert is_taken(plan_prepare(claim, known, {OTHER.uid: holder}, BOOT))


HELD = of("ssds-bbbbbb", "/dev/sdb", number="b8:16")
MINE = of("disks-aaaaaa", "/dev/sdb", number="b8:16")


def test_a_device_that_its_configuration_lost_is_held_as_long_as_the_claim() -> None:
    """Its rules were edited, so that it is another Configuration's: its containers still run."""
    holder = prepared(OTHER, a_result(HELD.name), instances=some_instances(HELD))
    where = DeviceLocator([MINE])
    (renewal,) = renew({OTHER.uid: holder}, where, resolve=str).values()
    assert renewal.after.devices[0].withheld

    answer = plan_prepare(
        allocated(WANTED, a_result(MINE.name)),
        some_instances(MINE),
        {OTHER.uid: renewal.after},
        BOOT,
    )

    assert is_taken(answer)
