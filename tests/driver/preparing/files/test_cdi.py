"""CDI files are what the container runtime accepts, and hold what a claim is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from driver.devices import DeviceSpec, Mount
from driver.preparing.files import cdi
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.files.records import Unreadable
from tests.driver.claim_builders import (
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)

WANTED = a_reference(1)
OTHER = a_reference(2)
FILE = f"moorage.dev-claim-{WANTED.uid}.json"


def a_prepared(**instance: Any) -> PreparedClaim:
    return prepared(WANTED, instances=some_instances(an_instance(**instance)))


def devices(claim: PreparedClaim) -> dict[str, Any]:
    """The devices that containers can be given."""
    document = json.loads(cdi.dump(claim))
    return {
        device["name"]: device["containerEdits"]
        for device in document["devices"]
        if not device["name"].endswith("_record")
    }


def test_file_of_a_claim() -> None:
    claim = a_prepared(
        properties={"URL": "rtsp://10.0.0.7/", "MODEL": "X"},
        device_specs=(DeviceSpec("/dev/video0", "/dev/video3", "rw"),),
        mounts=(Mount("/calibration", "/var/lib/cam"), Mount("/scratch", "/tmp/cam", False)),
    )

    document = json.loads(cdi.dump(claim))

    assert document["cdiVersion"] == "0.5.0"
    assert document["kind"] == "moorage.dev/claim"
    assert devices(claim) == {
        f"{WANTED.uid}_req_node-a_loop-aaaaaa": {
            "env": [
                "MODEL=X",
                "URL=rtsp://10.0.0.7/",
                "MODEL_AAAAAA=X",
                "URL_AAAAAA=rtsp://10.0.0.7/",
            ],
            "deviceNodes": [
                {"path": "/dev/video0", "hostPath": "/dev/video3", "permissions": "rw"}
            ],
            "mounts": [
                {
                    "hostPath": "/var/lib/cam",
                    "containerPath": "/calibration",
                    "options": ["rbind", "rprivate", "ro"],
                },
                {
                    "hostPath": "/tmp/cam",
                    "containerPath": "/scratch",
                    "options": ["rbind", "rprivate", "rw"],
                },
            ],
        }
    }


def test_ids_are_those_of_the_file() -> None:
    claim = a_prepared()

    ids = [i for device in claim.devices for i in cdi.device_ids(device)]

    assert ids == [f"moorage.dev/claim={name}" for name in devices(claim)]


def test_device_that_adds_nothing_is_in_the_file_lest_its_id_leads_nowhere() -> None:
    """It may come to add something, or may have: the kubelet keeps the ids that it was told."""
    claim = a_prepared(properties={}, device_specs=())

    (edits,) = devices(claim).values()
    assert edits == {"env": ["MOORAGE_INSTANCE_AAAAAA=loop-aaaaaa"]}
    assert [i.partition("=")[2] for i in cdi.device_ids(claim.devices[0])] == list(devices(claim))


def test_device_that_is_withheld_is_not_in_the_file_and_keeps_its_id() -> None:
    claim = a_prepared()
    away = replace(claim.devices[0], withheld="is offline", device_specs=(), mounts=())
    withheld = replace(claim, devices=(away,))

    assert devices(withheld) == {}
    assert cdi.device_ids(away) == cdi.device_ids(claim.devices[0])
    assert cdi.load(cdi.dump(withheld), WANTED.uid) == withheld


def applied(claim: PreparedClaim) -> dict[str, str]:
    """The environment of a container, as CDI's `ContainerEdits.Apply` makes it."""
    ids = [i for device in claim.devices for i in cdi.device_ids(device)]
    edits = {f"moorage.dev/claim={name}": edits for name, edits in devices(claim).items()}
    return dict(variable.split("=", 1) for device_id in ids for variable in edits[device_id]["env"])


@pytest.mark.parametrize("names", [["cam-aaaaaa", "cam-bbbbbb"], ["cam-bbbbbb", "cam-aaaaaa"]])
def test_first_instance_by_name_wins_the_plain_name(names: list[str]) -> None:
    cameras = [an_instance(name, properties={"URL": name}) for name in names]
    claim = prepared(WANTED, *map(a_result, names), instances=some_instances(*cameras))

    assert applied(claim) == {
        "URL": "cam-aaaaaa",
        "URL_AAAAAA": "cam-aaaaaa",
        "URL_BBBBBB": "cam-bbbbbb",
    }


def test_of_two_devices_a_container_gets_what_both_give_it() -> None:
    """A runtime takes the later of two mounts, and of two nodes, at one path."""
    cameras = [
        an_instance(
            f"cam-{digits}",
            mounts=(Mount("/calibration", "/var/cams", read_only=permissions == "r"),),
            device_specs=(DeviceSpec("/dev/mux", "/dev/mux", permissions),),
        )
        for digits, permissions in (("aaaaaa", "r"), ("bbbbbb", "w"), ("cccccc", "r"))
    ]
    results = [a_result("cam-aaaaaa"), a_result("cam-bbbbbb"), a_result("cam-cccccc", "other")]
    claim = prepared(WANTED, *results, instances=some_instances(*cameras))

    found = {
        name.rpartition("_")[2]: (
            edits["deviceNodes"][0]["permissions"],
            edits["mounts"][0]["options"][-1],
        )
        for name, edits in devices(claim).items()
    }
    assert found == {
        "cam-aaaaaa": ("rw", "rw"),
        "cam-bbbbbb": ("rw", "rw"),
        "cam-cccccc": ("r", "ro"),
    }


@pytest.mark.parametrize(
    ("name", "value", "reaches_the_container"),
    [
        ("ONVIF_DEVICE_SERVICE_URL", "http://x", True),
        ("with.dots-and-dashes", "x", True),
        ("EMPTY", "", True),
        ("CERTIFICATE", "-----BEGIN\nMIIB\n-----END\n", True),
        ("", "x", False),
        ("A=B", "x", False),
        ("1ST", "x", False),
        ("WITH SPACE", "x", False),
        ("ÜMLAUT", "x", False),
        ("NUL", "a\0b", False),
        ("NOT_UTF8", b"\xff".decode(errors="surrogateescape"), False),
    ],
)
def test_properties_that_are_no_variables_are_left_out_and_told(
    name: str, value: str, reaches_the_container: bool
) -> None:
    claim = a_prepared(properties={name: value, "ALWAYS": "x"})

    assert (name in applied(claim)) is reaches_the_container
    assert cdi.unusable_properties(claim) == ([] if reaches_the_container else [name])
    assert applied(claim)["ALWAYS"] == "x"


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,9}", fullmatch=True), st.text()))
def test_file_is_yaml_and_json_and_loads_as_its_claim(properties: dict[str, str]) -> None:
    claim = a_prepared(properties=properties)

    text = cdi.dump(claim)

    assert yaml.safe_load(text) == json.loads(text)
    assert cdi.load(text, WANTED.uid) == claim


@pytest.mark.parametrize("value", ["\x7f", "\x85", "\u2028", "\ufeff", "\uffff", "\U0001f600"])
def test_characters_that_yaml_refuses_raw_arrive(value: str) -> None:
    assert applied(a_prepared(properties={"VALUE": value}))["VALUE"] == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "it is no CDI file of ours"),
        (b"{", "it is no CDI file of ours"),
        (b"[]", "it is no CDI file of ours"),
        (b"\xff", "it is no CDI file of ours"),
        (b"[" * 100_000, "it is no CDI file of ours"),
        (b'{"devices": []}', "it has no record of its claim"),
        (cdi.dump(prepared(OTHER)), "it has no record of its claim"),
        (
            cdi.dump(prepared(OTHER)).replace(
                f"{OTHER.uid}_record".encode(), f"{WANTED.uid}_record".encode()
            ),
            "it is another claim's",
        ),
    ],
)
def test_file_that_is_not_ours_any_more(text: bytes, reason: str) -> None:
    loaded = cdi.load(text, WANTED.uid)

    assert isinstance(loaded, Unreadable)
    assert loaded.reason.startswith(reason)


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        (FILE, WANTED.uid),
        (f".{FILE}.tmp", None),
        (f"{FILE}.bak", None),
        ("moorage.dev-claim-.json", None),
        ("nvidia.yaml", None),
    ],
)
def test_files_of_others_are_left_alone(name: str, uid: str | None) -> None:
    assert cdi.claim_of(name) == uid
