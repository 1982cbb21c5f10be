"""What is prepared follows its devices, and never leads to another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName, DeviceName
from driver.devices import DeviceSpec, Mount
from driver.environment_rules import EnvironmentRules
from driver.instances.instances import Instance
from driver.preparing.claim_events import ClaimEvent, change_events, pods_of, taken_events
from driver.preparing.files import cdi
from driver.preparing.files.prepared import PreparedClaim, PreparedDevice
from driver.preparing.grants.claims import AllocatedClaim, allocated_claim, plan_prepare
from driver.preparing.grants.device_events import DeviceEvent
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import concerned, renew
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_claim,
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)

WANTED = a_reference(1)
POOL = "shared/cam"


def disk(path: str, name: str = "loop-aaaaaa", **fields: Any) -> Instance:
    return an_instance(
        name,
        properties={"UDEV_DEVNODE": path},
        device_specs=(DeviceSpec(path, path),),
        **{"device": f"serial of {name}", **fields},
    )


def camera(url: str, name: str = "cam-aaaaaa", **fields: Any) -> Instance:
    fields = {"device": f"uuid of {name}", "shared": True, "device_specs": (), **fields}
    return an_instance(name, properties={"URL": url}, **fields)


def holding(*instances: Instance) -> PreparedClaim:
    """A claim that is prepared with these."""
    known = some_instances(*instances)
    return prepared(WANTED, *(a_result(i.name) for i in instances), instances=known)


def holding_camera(instance: Instance) -> PreparedClaim:
    known = {(POOL, DeviceName(instance.name)): instance}
    claim = allocated_claim(a_claim(WANTED, a_result(instance.name, pool=POOL)), WANTED, {NODE})
    assert isinstance(claim, AllocatedClaim)
    planned = plan_prepare(claim, known, {}, BOOT)
    assert isinstance(planned, PreparedClaim)
    return planned


def renewed(
    claim: PreparedClaim,
    reported: Iterable[Instance] = (),
    unheard: Iterable[str] = (),
    resolve: Callable[[str], str] = str,
) -> PreparedClaim:
    where = DeviceLocator(reported, frozenset(map(ConfigurationName, unheard)))
    renewals = renew({WANTED.uid: claim}, where, resolve)
    return renewals[WANTED.uid].after if renewals else claim


def only(claim: PreparedClaim) -> PreparedDevice:
    (device,) = claim.devices
    return device


def test_nothing_changes_where_nothing_changed() -> None:
    claim = holding(disk("/dev/a"))

    assert renew({WANTED.uid: claim}, DeviceLocator([disk("/dev/a")]), str) == {}


DISKS = [
    disk(path, name) for path in ("/dev/a", "/dev/b") for name in ("loop-aaaaaa", "loop-bbbbbb")
]
NOTHING = replace(DISKS[0], device_specs=())
reports = st.lists(st.sampled_from([*DISKS, NOTHING]), unique_by=lambda i: i.name)


@given(reports, reports, st.booleans(), st.booleans())
def test_claims_that_are_not_concerned_need_no_look(
    before: list[Instance], after: list[Instance], are_links: bool, is_unheard: bool
) -> None:
    """At each change of what is reported, from claims that were right before it."""
    unheard = {ConfigurationName("loop")} if is_unheard else set()
    was, now = DeviceLocator(before), DeviceLocator(after, unheard)
    leads = {"/dev/a": "/dev/b", "/dev/b": "/dev/c"} if are_links else {}
    held = {a_reference(n).uid: holding(DISKS[n]) for n in range(2)}
    claims = {u: replace(c, reference=a_reference(n)) for n, (u, c) in enumerate(held.items())}
    claims |= {uid: change.after for uid, change in renew(claims, was, str).items()}

    def resolve(path: str) -> str:
        return leads.get(path, path)

    claims |= {uid: change.after for uid, change in renew(claims, was, resolve).items()}
    few = concerned(claims, now, was)

    assert renew(claims, now, resolve, only=few) == renew(claims, now, resolve)


def test_device_that_moved_is_given_where_it_is() -> None:
    after = only(renewed(holding(disk("/dev/a")), [disk("/dev/b")]))

    assert after.paths == ("/dev/b",)
    assert after.properties == {"UDEV_DEVNODE": "/dev/b"}
    assert after.former_paths == ("/dev/a",)


def test_device_that_is_back_where_it_was_has_left_nothing() -> None:
    claim = holding(disk("/dev/a"))

    assert renewed(renewed(claim, [disk("/dev/b")]), [disk("/dev/a")]).devices[0].former_paths == (
        "/dev/b",
    )
    assert renewed(renewed(claim), [disk("/dev/a")]) == claim


def test_device_that_is_away_is_withheld() -> None:
    mounts = (Mount("/in", "/out"),)
    after = only(renewed(holding(disk("/dev/a", mounts=mounts))))

    assert (after.withheld, after.device_specs, after.mounts) == ("is offline", (), ())
    assert after.former_paths == ("/dev/a",)


def test_local_device_without_a_node_is_withheld_too() -> None:
    """Its path in sysfs may be another's, and its container would look there."""
    claim = holding(an_instance(device_specs=()))

    assert only(renewed(claim)).withheld == "is offline"


def test_device_that_is_unheard_stays_unless_another_is_where_it_was() -> None:
    claim, other = holding(disk("/dev/a")), disk("/dev/a", "loop-bbbbbb")

    assert renewed(claim, unheard=["loop"]) == claim
    assert renewed(claim, [disk("/dev/c", "loop-bbbbbb")], unheard=["loop"]) == claim
    withheld = only(renewed(claim, [other], unheard=["loop"]))
    assert withheld.withheld == "was at /dev/a, where Instance loop-bbbbbb is now"


def test_path_under_another_configuration_may_be_the_same_device() -> None:
    claim = holding(disk("/dev/a"))

    assert renewed(claim, [disk("/dev/a", "other-bbbbbb")], unheard=["loop"]) == claim


def test_device_is_known_by_more_than_its_name() -> None:
    claim, thief = holding(disk("/dev/a")), disk("/dev/a", device="another serial")

    assert only(renewed(claim, [thief])).withheld
    renamed = disk("/dev/b", "loop-cccccc", device="serial of loop-aaaaaa")
    assert only(renewed(claim, [renamed])).instance == "loop-cccccc"


def test_what_an_earlier_driver_prepared_is_known_by_its_name() -> None:
    claim = holding(disk("/dev/a"))
    old = replace(claim, devices=tuple(replace(d, digest="") for d in claim.devices))

    assert only(renewed(old, [disk("/dev/b")])).paths == ("/dev/b",)
    assert only(renewed(old, [disk("/dev/b")])).digest == "serial of loop-aaaaaa"
    assert renewed(old, unheard=["loop"]) == old


def test_device_that_the_runtime_would_refuse_is_withheld() -> None:
    bad = disk("/dev/a", mounts=(Mount("in", "/out"),))

    assert "is not absolute" in only(renewed(holding(disk("/dev/a")), [bad])).withheld


def test_links_are_followed() -> None:
    after = only(renewed(holding(disk("/dev/a")), [disk("/dev/link")], resolve=lambda p: "/dev/b"))

    assert after.paths == ("/dev/b",)


BY_ID = "/dev/serial/by-id/usb-Acme"


def notices_of(before: PreparedClaim, resolve: Callable[[str], str]) -> tuple[ClaimEvent, ...]:
    where = DeviceLocator([disk(BY_ID)])
    return change_events(renew({WANTED.uid: before}, where, resolve).values(), where)


def test_a_link_that_an_earlier_driver_wrote_is_where_it_leads() -> None:
    """It did not see the host's links, and the runtime followed them: no device moved."""
    before = holding(disk(BY_ID))
    leads = {BY_ID: "/dev/ttyUSB0"}

    after = only(renewed(before, [disk(BY_ID)], resolve=lambda path: leads.get(path, path)))

    assert (after.paths, after.former_paths) == (("/dev/ttyUSB0",), ())
    notices = notices_of(before, lambda path: leads.get(path, path))
    assert [told.reason for _, told in notices if told.reason == "DeviceMoved"] == []


def test_a_device_whose_link_leads_elsewhere_has_moved() -> None:
    before = renewed(holding(disk(BY_ID)), [disk(BY_ID)], resolve=lambda _: "/dev/ttyUSB0")
    leads = {BY_ID: "/dev/ttyUSB1"}

    ((_, told),) = notices_of(before, lambda path: leads.get(path, path))

    assert told.reason == "DeviceMoved"
    assert "/dev/ttyUSB0" in told.sentence


def test_network_device_that_is_away_keeps_its_address() -> None:
    claim = holding_camera(camera("http://10.0.0.7/"))

    assert renewed(claim) == claim


def test_network_device_whose_address_is_another_s_is_withheld() -> None:
    claim = holding_camera(camera("http://10.0.0.7/"))

    after = only(renewed(claim, [camera("http://10.0.0.7/", "cam-bbbbbb")]))

    assert after.withheld == "was at http://10.0.0.7/, where Instance cam-bbbbbb is now"
    assert only(renewed(renewed(claim), [camera("http://10.0.0.8/")])).withheld == ""


def test_network_device_with_another_address_is_given_with_that() -> None:
    claim = holding_camera(camera("http://10.0.0.7:80/"))

    assert only(renewed(claim, [camera("http://10.0.0.7:81/")])).properties == {
        "URL": "http://10.0.0.7:81/"
    }


def test_network_device_with_a_node_of_the_host_is_withheld() -> None:
    specs = (DeviceSpec("/dev/a", "/dev/a"),)
    claim = holding_camera(camera("http://10.0.0.7:80/", device_specs=specs))

    assert only(renewed(claim)).withheld == "is offline"


def test_claims_of_which_something_is_withheld_are_written_first() -> None:
    first, second = holding(disk("/dev/a")), holding(disk("/dev/b", "loop-bbbbbb"))
    second = replace(second, reference=a_reference(2))
    claims = {WANTED.uid: first, second.reference.uid: second}

    renewals = renew(claims, DeviceLocator([disk("/dev/b")]), str)

    assert list(renewals) == [second.reference.uid, WANTED.uid]


def notices(claim: PreparedClaim, *reported: Instance) -> list[tuple[str, str, bool]]:
    where = DeviceLocator(reported)
    renewals = renew({WANTED.uid: claim}, where, str)
    told = change_events(renewals.values(), where)
    assert {claim for claim, _ in told} <= {WANTED}
    return [(each.reason, each.sentence, each.is_warning) for _, each in told]


def test_pods_are_told_what_their_containers_hold() -> None:
    claim, other = holding(disk("/dev/a")), disk("/dev/a", "loop-bbbbbb")
    away = renewed(claim)

    assert notices(claim, disk("/dev/b"), other) == [
        (
            "DeviceMoved",
            "Device node-a/loop-aaaaaa moved to /dev/b. Containers that were started before hold"
            " /dev/a, which is Instance loop-bbbbbb's now: start them anew.",
            True,
        )
    ]
    assert notices(claim) == [
        (
            "DeviceAway",
            "Device node-a/loop-aaaaaa is offline: no container is started with it until it is"
            " back. Containers that were started before hold /dev/a.",
            True,
        )
    ]
    assert notices(away, disk("/dev/a")) == [
        ("DeviceBack", "Device node-a/loop-aaaaaa is back at /dev/a.", False)
    ]


def test_of_a_device_that_moved_often_the_last_path_is_told_and_the_others_counted() -> None:
    """No pod is told of a path that only pods before it had."""
    claim = holding(disk("/dev/s0"))
    for number in range(1, 21):
        claim = renewed(claim, [disk(f"/dev/s{number}")])

    (moved,), (away,) = notices(claim, disk("/dev/sx")), notices(claim)
    assert moved[1] == (
        "Device node-a/loop-aaaaaa moved to /dev/sx. Containers that were started before hold"
        " /dev/s20, or one of 20 earlier paths: start them anew."
    )
    assert away[1].endswith(" hold /dev/s20, or one of 20 earlier paths.")
    (back,) = notices(renewed(claim), disk("/dev/sx"))
    assert back[1].endswith(" hold /dev/s20, or one of 20 earlier paths: start them anew.")


def test_of_a_device_with_many_nodes_some_are_told() -> None:
    before, after = (
        an_instance(
            "loop-aaaaaa",
            device_specs=tuple(DeviceSpec(f"/dev/in{n}", f"/dev/{at}{n}") for n in range(5)),
        )
        for at in "ab"
    )

    ((_, sentence, _),) = notices(holding(before), after)

    assert sentence.endswith(
        " Containers that were started before hold /dev/a0, /dev/a1, /dev/a2, 2 more paths: start"
        " them anew."
    )


def test_properties_are_told_by_name_since_they_may_be_secrets() -> None:
    claim = holding_camera(camera("http://admin:secret@10.0.0.7/"))

    ((reason, sentence, _),) = notices(claim, camera("http://admin:secret@10.0.0.8/"))

    assert (reason, sentence) == (
        "DeviceChanged",
        f"Device {POOL}/cam-aaaaaa changed: containers that run have its old URL.",
    )


def test_pods_are_told_when_a_path_that_they_hold_is_taken_later() -> None:
    claim = renewed(holding(disk("/dev/a")), [disk("/dev/b")])

    assert taken_events([claim], DeviceLocator([disk("/dev/b")])) == frozenset()
    where = DeviceLocator([disk("/dev/b"), disk("/dev/a", "loop-bbbbbb")])
    assert taken_events([claim], where) == {
        (
            WANTED,
            DeviceEvent(
                "DevicePathTaken",
                "/dev/a is Instance loop-bbbbbb's now. Containers that were started when device"
                " node-a/loop-aaaaaa was there hold it: start them anew.",
            ),
        )
    }


def a_pod(name: str, phase: str = "Running", **parts: Any) -> dict[str, Any]:
    spec = {"resourceClaims": [{"name": "disk", "resourceClaimName": "claim-1"}]}
    metadata = {"namespace": "default", "name": name, "uid": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}, **parts}


@pytest.mark.parametrize(
    ("pod", "is_told"),
    [
        (a_pod("by name"), True),
        (a_pod("waits", "Pending"), True),
        (a_pod("over", "Succeeded"), False),
        (a_pod("elsewhere", metadata={"namespace": "other", "name": "x", "uid": "x"}), False),
        (a_pod("another", spec={"resourceClaims": [{"resourceClaimName": "claim-2"}]}), False),
        (a_pod("none", spec={}, status={}), False),
        (
            a_pod(
                "by template",
                spec={"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}]},
                status={"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "claim-1"}]},
            ),
            True,
        ),
        (
            a_pod(
                "by extended resource",
                spec={},
                status={"extendedResourceClaimStatus": {"resourceClaimName": "claim-1"}},
            ),
            True,
        ),
    ],
)
def test_pods_of_a_claim(pod: dict[str, Any], is_told: bool) -> None:
    assert bool(pods_of([pod], WANTED)) is is_told


def test_a_device_that_is_plugged_anew_is_guarded_anew_and_no_pod_is_told() -> None:
    before = holding(disk("/dev/sdb", guards=("/dev/disk/by-diskseq/9",)))
    where = DeviceLocator([disk("/dev/sdb", guards=("/dev/disk/by-diskseq/10",))])

    renewal = renew({WANTED.uid: before}, where, lambda path: path)[WANTED.uid]

    (device,) = renewal.after.devices
    assert [mount.host_path for mount in device.mounts] == ["/dev/disk/by-diskseq/10"]
    assert change_events([renewal], where) == ()


DENIED = {"LD_PRELOAD": "/x.so", "https_proxy": "http://10.0.0.1", "MOORAGE_X": "1"}


def as_earlier(claim: PreparedClaim, **properties: str) -> PreparedClaim:
    """A claim as a driver prepared it that denied nothing."""
    (device,) = claim.devices
    return replace(claim, devices=(replace(device, properties=properties),))


@pytest.mark.parametrize("reported", [True, False])
def test_what_an_earlier_driver_gave_is_denied_to_containers_that_start_later(
    reported: bool,
) -> None:
    """Whether its device is there, or nobody speaks of it any more."""
    now = camera("http://10.0.0.7", "cam-aaaaaa")
    claim = as_earlier(holding_camera(now), **DENIED, URL="http://10.0.0.7")
    said = replace(now, properties={**DENIED, "URL": "http://10.0.0.7"})

    after = renewed(claim, [said] if reported else [])

    assert cdi.environment(only(after)) == {
        "URL": "http://10.0.0.7",
        "URL_AAAAAA": "http://10.0.0.7",
    }
    assert b"LD_PRELOAD" not in cdi.dump(after)


def test_an_administrator_denies_more_of_what_nobody_reports() -> None:
    claim = as_earlier(holding_camera(camera("http://10.0.0.7")), ACME_KEY="1", HTTPS_PROXY="x")
    rules = EnvironmentRules(denied=("ACME_*",), allowed=frozenset({"HTTPS_PROXY"}))

    after = renew({WANTED.uid: claim}, DeviceLocator([], (), rules), str)[WANTED.uid].after

    assert only(after).properties == {"HTTPS_PROXY": "x"}
