"""What of a device a claim's containers get, as the claim asks; and what stays of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from driver.device_configs import DeviceConfig
from driver.devices import DeviceSpec, Mount
from driver.environment_rules import EnvironmentRules
from driver.instances.instances import Instance
from driver.preparing.files import cdi
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import (
    AllocatedClaim,
    Failure,
    Instances,
    is_prepared,
    plan_prepare,
)
from driver.preparing.grants.configured import CERTIFICATES
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import OnHost, renew
from driver.preparing.grants.renewals import renewed as renewed_claim
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_reference,
    a_result,
    allocated,
    an_instance,
    some_instances,
)

WANTED = a_reference(1)
FOLDER = "/srv/certificates/loop"
CERTIFIED = an_instance(properties={CERTIFICATES: FOLDER}, device="serial")
EVERYTHING = DeviceConfig(
    env=(("FPS", "25"),), permissions="r", mode=0o640, uid=1000, gid=44, certificates="/etc/camera"
)


def allowed(_path: str) -> str | None:
    return None


def refused(path: str) -> str | None:
    return f"mount {path} is not in --handler-mount-paths"


def asking(config: DeviceConfig, *devices: str) -> AllocatedClaim:
    claim = allocated(WANTED, *(a_result(device) for device in devices or ["loop-aaaaaa"]))
    return replace(claim, devices=tuple(replace(d, config=config) for d in claim.devices))


def planned(
    config: DeviceConfig, *instances: Instance, refuse: Any = allowed
) -> PreparedClaim | Failure:
    found = instances or (CERTIFIED,)
    claim = asking(config, *(i.name for i in found))
    return plan_prepare(claim, some_instances(*found), {}, BOOT, refuse)


def edits(claim: PreparedClaim | Failure) -> Any:
    assert isinstance(claim, PreparedClaim), claim
    return json.loads(cdi.dump(claim))["devices"][0]["containerEdits"]


def test_all_that_is_asked_is_given() -> None:
    assert edits(planned(EVERYTHING)) == {
        "env": ["FPS=25"],
        "deviceNodes": [
            {
                "path": "/dev/loop-aaaaaa",
                "hostPath": "/dev/loop-aaaaaa",
                "permissions": "r",
                "fileMode": 0o640,
                "uid": 1000,
                "gid": 44,
            }
        ],
        "mounts": [
            {
                "hostPath": FOLDER,
                "containerPath": "/etc/camera",
                "options": ["rbind", "rprivate", "ro"],
            }
        ],
    }


def test_nothing_asked_is_as_before() -> None:
    found = edits(planned(DeviceConfig()))

    assert found["deviceNodes"] == [
        {"path": "/dev/loop-aaaaaa", "hostPath": "/dev/loop-aaaaaa", "permissions": "rw"}
    ]
    assert found.keys() == {"deviceNodes"}


@pytest.mark.parametrize("config", [DeviceConfig(), DeviceConfig(env=(("FPS", "25"),))])
def test_guards_are_mounted_so_that_nothing_starts_without_them(config: DeviceConfig) -> None:
    guarded = an_instance(device="serial", guards=("/dev/disk/by-diskseq/9",))
    mount = {
        "hostPath": "/dev/disk/by-diskseq/9",
        "containerPath": "/var/run/moorage.dev/guards/dev/disk/by-diskseq/9",
        "options": ["rbind", "rprivate", "ro"],
    }

    assert edits(planned(config, guarded))["mounts"] == [mount]


def test_owner_root_is_not_nobody() -> None:
    (node,) = edits(planned(DeviceConfig(uid=0, gid=0, mode=0)))["deviceNodes"]

    assert (node["uid"], node["gid"], node["fileMode"]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["UDEV_DEVNODE", "UDEV_DEVNODE_AAAAAA"])
def test_variables_of_the_device_are_not_replaced(name: str) -> None:
    assert planned(DeviceConfig(env=((name, "/dev/null"),)), an_instance()) == Failure(
        f"device {NODE}/loop-aaaaaa cannot have env[{name}] of its DeviceConfig:"
        " the device has that variable itself"
    )


def test_no_more_permissions_than_the_handler_gives() -> None:
    assert planned(DeviceConfig(permissions="rwm")) == Failure(
        f"device {NODE}/loop-aaaaaa cannot have permissions rwm of its DeviceConfig:"
        " its handler gives /dev/loop-aaaaaa with rw"
    )


def test_certificates_that_there_are_not() -> None:
    found = planned(DeviceConfig(certificates="/etc/camera"), an_instance())

    assert found == Failure(
        f"device {NODE}/loop-aaaaaa cannot have certificates of its DeviceConfig:"
        " it has no property moorage.dev/certificates"
    )


def test_certificates_lie_where_the_node_allows() -> None:
    found = planned(DeviceConfig(certificates="/etc/camera"), refuse=refused)

    assert found == Failure(
        f"device {NODE}/loop-aaaaaa cannot have certificates of its DeviceConfig:"
        f" mount {FOLDER} is not in --handler-mount-paths"
    )


def test_certificates_of_two_devices_cannot_be_at_one_place() -> None:
    other = an_instance("loop-bbbbbb", properties={CERTIFICATES: "/srv/certificates/other"})
    found = planned(DeviceConfig(certificates="/etc/camera"), CERTIFIED, other)

    assert isinstance(found, Failure)
    assert "would both be /etc/camera in the container" in found.sentence


def test_folder_on_the_host_is_nobodys_variable() -> None:
    claim = planned(DeviceConfig())

    assert "env" not in edits(claim)
    assert isinstance(claim, PreparedClaim)
    assert cdi.unusable_properties(claim) == []


def test_record_keeps_it() -> None:
    claim = planned(EVERYTHING)
    assert isinstance(claim, PreparedClaim)

    assert cdi.load(cdi.dump(claim), WANTED.uid) == claim


def test_claim_of_a_driver_that_knew_no_configs_is_planned_again() -> None:
    before = planned(DeviceConfig())
    assert isinstance(before, PreparedClaim)
    known = {WANTED.uid: before}

    assert not is_prepared(asking(EVERYTHING), known)
    after = plan_prepare(asking(EVERYTHING), some_instances(CERTIFIED), known, BOOT, allowed)
    assert edits(after)["env"] == ["FPS=25"]


def moved(instance: Instance = CERTIFIED) -> Instance:
    spec = DeviceSpec("/dev/loop-aaaaaa", "/dev/elsewhere", "rw")
    return replace(instance, device_specs=(spec,))


def renewed(claim: PreparedClaim | Failure, now: Instance, refuse: Any = allowed) -> PreparedClaim:
    assert isinstance(claim, PreparedClaim)
    where = DeviceLocator([now])
    changes = renew({WANTED.uid: claim}, where, str, refuse)
    return changes[WANTED.uid].after


def test_device_that_moved_is_given_as_it_was_asked_for() -> None:
    after = renewed(planned(EVERYTHING), moved())
    (node,) = edits(after)["deviceNodes"]

    assert node["hostPath"] == "/dev/elsewhere"
    assert (node["permissions"], node["fileMode"], node["uid"]) == ("r", 0o640, 1000)
    assert edits(after)["env"] == ["FPS=25"]
    assert after.devices[0].mounts == (Mount("/etc/camera", FOLDER),)


@pytest.mark.parametrize(
    ("now", "refuse", "why"),
    [
        (moved(replace(CERTIFIED, properties={})), allowed, "has no property moorage"),
        (moved(), refused, "is not in --handler-mount-paths"),
        (replace(CERTIFIED, properties={CERTIFICATES: FOLDER, "FPS": "5"}), allowed, "env[FPS]"),
    ],
)
def test_device_that_no_longer_has_it_is_withheld_until_it_has(
    now: Instance, refuse: Any, why: str
) -> None:
    claim = planned(EVERYTHING)
    after = renewed(claim, now, refuse)

    assert why in after.devices[0].withheld
    assert (after.devices[0].mounts, after.devices[0].device_specs) == ((), ())
    back = renewed_claim(after, DeviceLocator([CERTIFIED]), OnHost(str, allowed))
    assert isinstance(claim, PreparedClaim)
    assert isinstance(back, PreparedClaim)
    assert edits(back) == edits(claim)


def test_instances_are_left_as_they_are() -> None:
    instances: Instances = some_instances(CERTIFIED)

    plan_prepare(asking(EVERYTHING), instances, {}, BOOT, allowed)

    assert instances == some_instances(CERTIFIED)


DENIED = {"LD_PRELOAD": "/x.so", "HTTPS_PROXY": "http://10.0.0.1", "MOORAGE_X": "1"}


@pytest.mark.parametrize("config", [DeviceConfig(), DeviceConfig(env=(("FPS", "25"),))])
def test_of_what_is_denied_nothing_reaches_containers(config: DeviceConfig) -> None:
    claim = planned(config, an_instance(properties={**DENIED, "FLOOR": "2"}))

    asked = [f"{name}={value}" for name, value in config.env]
    assert edits(claim)["env"] == [*asked, "FLOOR=2", "FLOOR_AAAAAA=2"]


def test_what_an_administrator_denies_is_no_claims_to_ask() -> None:
    rules = EnvironmentRules(denied=("ACME_*",))

    assert planned(DeviceConfig(env=(("ACME_KEY", "1"),)), an_instance(rules=rules)) == Failure(
        f"device {NODE}/loop-aaaaaa cannot have env[ACME_KEY] of its DeviceConfig:"
        " variables ACME_* are denied by --denied-environment"
    )


def test_claim_of_a_driver_that_denied_nothing_is_withheld_with_its_reason() -> None:
    before = planned(DeviceConfig(env=(("ACME_KEY", "1"),)), an_instance())

    after = renewed(before, an_instance(rules=EnvironmentRules(denied=("ACME_*",))))

    assert after.devices[0].withheld == (
        "cannot have env[ACME_KEY] of its DeviceConfig:"
        " variables ACME_* are denied by --denied-environment"
    )
