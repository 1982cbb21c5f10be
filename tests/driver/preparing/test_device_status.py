"""What a claim's status says of its devices."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from driver.devices import DeviceSpec, Mount
from driver.preparing.device_status import (
    DATA_LIMIT,
    Conditions,
    conditions_in,
    is_stored,
    key_of,
    status_apply,
    stored_conditions,
)
from driver.preparing.files.addresses import network_data
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.ready_conditions import Readiness
from tests.driver.claim_builders import a_reference, a_result, an_instance, prepared, some_instances

WANTED = a_reference(1)
NOW = datetime(2026, 11, 27, 18, 0, tzinfo=UTC)
AS_PREPARED = Readiness(True, "Prepared", "The device is prepared on node node-a.")
AWAY = Readiness(False, "Offline", "On node node-a: the device is offline.")


def applied(
    claim: PreparedClaim, ready: Readiness = AS_PREPARED, before: Conditions | None = None
) -> dict[str, Any]:
    keys = [key_of(device.allocated) for device in claim.devices]
    return status_apply(claim, dict.fromkeys(keys, ready), before or {}, NOW)


def entries(*results: Any, **fields: Any) -> list[dict[str, Any]]:
    instances = some_instances(an_instance(**fields))
    body = applied(prepared(WANTED, *results, instances=instances))
    devices: list[dict[str, Any]] = body["status"]["devices"]
    return devices


def test_it_names_the_very_claim_and_nothing_of_it_but_devices() -> None:
    body = applied(prepared(WANTED))

    assert body["metadata"] == {
        "namespace": WANTED.namespace,
        "name": WANTED.name,
        "uid": WANTED.uid,
    }
    assert set(body["status"]) == {"devices"}


def test_it_says_what_containers_get() -> None:
    (entry,) = entries(
        properties={"B": "2", "A": "1", "no variable": "x"},
        mounts=(Mount("/cert", "/etc/cert"),),
        device_specs=(DeviceSpec("/dev/in", "/dev/out"),),
    )

    assert entry == {
        "driver": "moorage.dev",
        "pool": "node-a",
        "device": "loop-aaaaaa",
        "data": {
            "configuration": "loop",
            "instance": "loop-aaaaaa",
            "properties": {"A": "1", "B": "2"},
            "deviceNodes": ["/dev/in"],
            "mounts": ["/cert"],
        },
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Prepared",
                "message": "The device is prepared on node node-a.",
                "lastTransitionTime": "2026-11-27T18:00:00Z",
            }
        ],
    }


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    claim = prepared(WANTED)
    stored = conditions_in(applied(claim))
    key = key_of(claim.devices[0].allocated)
    earlier = {key: replace(stored[key], last_transition_time="2026-11-01T00:00:00Z")}

    def time(ready: Readiness) -> str:
        (entry,) = applied(claim, ready, earlier)["status"]["devices"]
        return str(entry["conditions"][0]["lastTransitionTime"])

    assert time(AS_PREPARED) == "2026-11-01T00:00:00Z"
    assert time(AWAY) == "2026-11-27T18:00:00Z"


def test_what_is_stored_is_known_whatever_else_and_of_whatever_time_it_is() -> None:
    claim, key = prepared(WANTED), key_of(prepared(WANTED).devices[0].allocated)
    body = applied(claim)
    (entry,) = body["status"]["devices"]
    entry["conditions"].insert(0, {"type": "Pressed", "status": "True"})
    entry["conditions"][1]["lastTransitionTime"] = "2026-11-01T00:00:00Z"
    body["status"]["devices"].append({**entry, "driver": "gpu.example.com", "data": {}})

    assert is_stored(claim, {key: AS_PREPARED}, body)
    assert not is_stored(claim, {key: AWAY}, body)
    assert stored_conditions(claim, body)[key].last_transition_time == "2026-11-01T00:00:00Z"
    another = {**body, "metadata": {**body["metadata"], "uid": "another"}}
    assert not is_stored(claim, {key: AS_PREPARED}, another)
    assert stored_conditions(claim, another) == {}


def test_a_share_of_a_device_has_an_entry_of_its_own_and_a_second_request_none() -> None:
    shares = ["11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"]
    results = [a_result(shareID=shares[0]), a_result(request="two", shareID=shares[1])]

    assert [entry["shareID"] for entry in entries(*results)] == shares
    assert len(entries(a_result(), a_result(request="watch", adminAccess=True))) == 1


def test_what_has_no_room_is_left_out_and_named() -> None:
    (entry,) = entries(properties={"LONG": "x" * DATA_LIMIT})

    assert len(json.dumps(entry["data"])) <= DATA_LIMIT
    assert entry["data"]["omitted"] == ["properties"]
    assert entry["data"]["deviceNodes"] == ["/dev/loop-aaaaaa"]


def test_a_device_nobody_can_reach_by_an_address_has_no_network_data() -> None:
    (entry,) = entries()

    assert "networkData" not in entry


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"URL": "http://192.0.2.5:8080/onvif"}, {"ips": ["192.0.2.5/32"]}),
        ({"URL": "opc.tcp://[2001:db8::5]:4840"}, {"ips": ["2001:db8::5/128"]}),
        ({"URL": "http://[::ffff:192.0.2.5]/"}, {"ips": ["192.0.2.5/32"]}),
        ({"A": "http://192.0.2.5/a", "B": "http://192.0.2.5/b"}, {"ips": ["192.0.2.5/32"]}),
        ({"URL": "http://camera.example.com/"}, {}),
        ({"URL": "http://[not-an-address/"}, {}),
        ({"TEXT": "192.0.2.5"}, {}),
        ({"ONVIF_DEVICE_MAC_ADDRESS": "00:11:22:33:44:55"}, {}),
        (
            {
                "ONVIF_DEVICE_IP_ADDRESS": "192.0.2.6",
                "ONVIF_DEVICE_MAC_ADDRESS": "00:11:22:33:44:55",
                "ONVIF_DEVICE_SERVICE_URL": "http://192.0.2.5/onvif",
            },
            {"ips": ["192.0.2.6/32", "192.0.2.5/32"], "hardwareAddress": "00:11:22:33:44:55"},
        ),
        (
            {f"URL_{n:02}": f"http://192.0.2.{n}/" for n in range(17)},
            {"ips": [f"192.0.2.{n}/32" for n in range(16)]},
        ),
    ],
)
def test_addresses_are_what_urls_and_properties_say(
    properties: dict[str, str], expected: dict[str, Any]
) -> None:
    assert network_data(properties) == expected


def test_all_of_it_is_text_also_for_a_path_that_is_no_utf_8() -> None:
    claim = prepared(WANTED)
    (device,) = claim.devices
    away = dataclasses.replace(device, withheld="is at /dev/\udcff", device_specs=())

    (entry,) = applied(dataclasses.replace(claim, devices=(away,)))["status"]["devices"]

    assert entry["data"]["withheld"] == "is at /dev/\N{REPLACEMENT CHARACTER}"
