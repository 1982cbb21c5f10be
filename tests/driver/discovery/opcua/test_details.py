"""The opcua handler's details, and which of a server's URLs is the device."""

from __future__ import annotations

import pytest

from driver.api import Problem
from driver.discovery.filters import Filter
from driver.discovery.opcua.applications import (
    Application,
    Place,
    device,
    devices,
    place_of,
)
from driver.discovery.opcua.details import DEFAULT_URL, OpcuaDetails, parse_opcua_details

PATH = "spec.discoveryHandler.discoveryDetails"
LDS = "opc.tcp://10.0.0.1:4840/"


def test_details_of_akris_chart_are_taken() -> None:
    text = """
opcuaDiscoveryMethod:
  standard:
    discoveryUrls:
    - opc.tcp://10.0.0.1:4840/
    - opc.tcp://[fe80::1]:4841
applicationNames:
  action: Exclude
  items: [Press 7]
"""

    assert parse_opcua_details(text) == OpcuaDetails(
        ("opc.tcp://10.0.0.1:4840/", "opc.tcp://[fe80::1]:4841"),
        Filter(("Press 7",), include=False),
    )


def test_without_urls_the_discovery_server_of_the_node_is_asked() -> None:
    details = parse_opcua_details("opcuaDiscoveryMethod: {standard: {}}")

    assert details == OpcuaDetails((DEFAULT_URL,))


@pytest.mark.parametrize(
    "url", ["http://a:1/", "opc.tcp://a/", "opc.tcp://:1", "opc.tcp://a:x", "opc.tcp://[::1", "a b"]
)
def test_a_url_without_host_and_port_is_a_problem(url: str) -> None:
    text = f"opcuaDiscoveryMethod: {{standard: {{discoveryUrls: ['{url}']}}}}"

    assert parse_opcua_details(text) == (
        Problem(
            f"{PATH}.opcuaDiscoveryMethod.standard.discoveryUrls[0]",
            f'"{url}" is no URL such as opc.tcp://localhost:4840/, with a host and a port.',
        ),
    )


@pytest.mark.parametrize("text", ["", "opcuaDiscoveryMethod: {}"])
def test_a_method_must_be_given(text: str) -> None:
    assert parse_opcua_details(text) == (
        Problem(
            f"{PATH}.opcuaDiscoveryMethod", "The method must be given; standard is the only one."
        ),
    )


@pytest.mark.parametrize(
    ("urls", "asked", "alone", "place"),
    [
        (["https://a/", "opc.tcp://a:1/x"], LDS, True, ("opc.tcp://a:1/x", f"{LDS}x")),
        (["opc.tcp://a:1/x"], LDS, False, ("opc.tcp://a:1/x", "opc.tcp://10.0.0.1:1/x")),
        (["opc.tcp://a/"], "opc.tcp://[::1]:2", False, ("opc.tcp://a/", "opc.tcp://[::1]/")),
        (["opc.tcp://a:1/x"], f"{LDS}y", True, ("opc.tcp://a:1/x", f"{LDS}y")),
        (["https://a/"], LDS, True, None),
        (["opc.tcp://a:99999/", "opc.tcp://[", "opc.tcp://\u202e:1/"], LDS, True, None),
        (["opc.tcp://" + "a" * 3000], LDS, True, None),
        ([], LDS, True, None),
    ],
)
def test_where_a_server_is(
    urls: list[str], asked: str, alone: bool, place: tuple[str, str] | None
) -> None:
    application = Application("a", is_server=True, discovery_urls=tuple(urls))

    assert place_of(application, asked, alone=alone) == (place and Place(*place, alone))


def test_a_server_of_two_discovery_servers_is_one_device() -> None:
    application = Application("Press", is_server=True, uri="urn:press")
    one, other = device("opc.tcp://b:1", application), device("opc.tcp://a:1", application)

    assert devices([one, other, one]) == (other, one)
    assert one.properties == {
        "OPCUA_DISCOVERY_URL": "opc.tcp://b:1",
        "OPCUA_APPLICATION_NAME": "Press",
        "OPCUA_APPLICATION_URI": "urn:press",
    }
