"""Cameras as devices, and who asks them."""

from __future__ import annotations

import json

import pytest

from driver.devices import Device
from driver.discovery.filters import Filter
from driver.discovery.onvif.credentials import Login, read_credentials
from driver.discovery.onvif.details import OnvifDetails
from driver.discovery.onvif.devices import (
    Address,
    Camera,
    Facts,
    addresses,
    devices,
    is_wanted,
    may_be_wanted,
)
from driver.discovery.onvif.messages import Match

FACTS = Facts(("10.0.0.2", "00:0A"), {"Manufacturer": "Acme", "HardwareId": "7"})
NAME = "onvif://www.onvif.org/name/"


def test_a_camera_is_what_it_is_for_akri_and_more() -> None:
    scopes = (f"{NAME}Gate%20A", "onvif://www.onvif.org/location/country/de", "other", NAME)
    listed = [f"onvif://www.onvif.org/{one}" for one in ("Profile/T", "type/ptz", "Profile/G")]
    told = (*scopes, *listed, *listed)

    assert devices([Camera(Address("http://a/", "u"), told, FACTS)], by_uuid=False) == (
        Device(
            "http://a/-u",
            {
                "ONVIF_DEVICE_SERVICE_URL": "http://a/",
                "ONVIF_DEVICE_UUID": "u",
                "ONVIF_DEVICE_IP_ADDRESS": "10.0.0.2",
                "ONVIF_DEVICE_MAC_ADDRESS": "00:0A",
                "ONVIF_DEVICE_NAME": "Gate A",
                "ONVIF_DEVICE_LOCATION": "country/de",
                "ONVIF_DEVICE_PROFILES": "G T",
                "ONVIF_DEVICE_TYPES": "ptz",
                "ONVIF_DEVICE_MANUFACTURER": "Acme",
            },
        ),
    )


def test_with_the_uuid_as_identity_a_new_address_is_no_new_camera() -> None:
    before = Camera(Address("http://10.0.0.9/", "u"), ())
    after = Camera(Address("http://10.0.0.7/", "u"), ())
    other = Camera(Address("http://[fd00::1]/", "u"), ())
    nameless = Camera(Address("http://10.0.0.5/", ""), ())

    [was] = devices([before], by_uuid=True)
    [now] = devices([other, after, nameless], by_uuid=True)
    [first] = devices([before, after], by_uuid=True)

    assert was.id == now.id == "u"
    assert now.properties["ONVIF_DEVICE_SERVICE_URL"] == "http://10.0.0.7/"
    assert first == was, "the address that was known first stays, however the other sorts"
    assert len(devices([before, after, other, nameless], by_uuid=False)) == 4


def test_only_urls_that_can_be_asked_are_addresses() -> None:
    urls = ("http://a/", "https://b:1/", "ftp://a/", "http://", "http://a:x/", "//a", "http://[")

    assert [one.url for one in addresses(Match("u", urls, ()))] == ["http://a/", "https://b:1/"]


@pytest.mark.parametrize(
    ("facts", "ips", "macs", "wanted"),
    [
        (FACTS, Filter(("10.0.0.2",)), Filter((), include=False), True),
        (FACTS, Filter((), include=False), Filter(("00:0a",), include=False), False),
        (Facts(), Filter((), include=False), Filter(("00:0a",), include=False), False),
        (Facts(), Filter((), include=False), Filter((), include=False), True),
    ],
)
def test_filters_on_addresses(facts: Facts, ips: Filter, macs: Filter, wanted: bool) -> None:
    assert is_wanted(OnvifDetails(ip_addresses=ips, mac_addresses=macs), facts) is wanted


def test_filters_on_uuid_and_scopes() -> None:
    details = OnvifDetails(uuids=Filter(("u",)), scopes=Filter(("s",), include=False))

    assert may_be_wanted(details, "u", ("t",))
    assert not may_be_wanted(details, "v", ("t",))
    assert not may_be_wanted(details, "u", ("t", "s"))


def test_credentials_are_taken_in_akris_three_ways() -> None:
    """Vectors of Akri's documentation: later ways win."""
    first = {"a-1": {"username": "x", "password": "Z2VoZWlt", "base64encoded": True}}
    second = {"A-1": {"username": "y"}, "b": {"username": "b", "password": "c"}}
    third = {"b": {"username_ref": "user", "password_ref": "pass"}, "c": {"username_ref": "user"}}
    properties = {
        "device_credential_list": b'["one", "two"]',
        "device_credential_ref_list": b'["three"]',
        "one": json.dumps(first).encode(),
        "two": json.dumps(second).encode(),
        "three": json.dumps(third).encode(),
        "user": b"root",
        "pass": "päss".encode(),
        "username_c_2": b"direct",
        "password_c_2": b"word",
        "username_default": b"anybody",
    }

    credentials = read_credentials(properties)

    assert credentials.logins == {
        "a-1": Login("y", ""),
        "b": Login("root", "päss"),
        "c": Login("root", ""),
        "c-2": Login("direct", "word"),
        "default": Login("anybody", ""),
    }
    assert credentials.flaws == ()


def test_a_base64_password_is_decoded() -> None:
    listed = {"a": {"username": "x", "password": "Z2VoZWlt", "base64encoded": True}}
    properties = {"device_credential_list": b'["l"]', "l": json.dumps(listed).encode()}

    assert read_credentials(properties).logins["a"] == Login("x", "geheim")


@pytest.mark.parametrize(
    ("properties", "flaw"),
    [
        (
            {"device_credential_list": b"secret"},
            "The property device_credential_list is not a JSON list.",
        ),
        (
            {"device_credential_list": b'["l"]', "l": b"[" * 100_000},
            "The property l is not a JSON object.",
        ),
        (
            {"device_credential_list": b'["l"]', "l": b'{"a": {"username": 7}}'},
            "The credentials that device_credential_list names are incomplete.",
        ),
        (
            {
                "device_credential_list": b'["l"]',
                "l": b'{"a": {"username": "u", "password": "%", "base64encoded": true}}',
            },
            "The credentials that device_credential_list names are incomplete.",
        ),
        ({"username_default": b"\xff"}, "The property username_default is not in UTF-8."),
    ],
)
def test_what_is_wrong_with_credentials_is_told_without_them(
    properties: dict[str, bytes | None], flaw: str
) -> None:
    credentials = read_credentials(properties)

    assert credentials.flaws == (flaw,)
    assert not credentials.logins
    assert "secret" not in repr(credentials)
