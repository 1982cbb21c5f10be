"""Which addresses are asked that strangers tell of."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.onvif.camera_places import source_towards
from driver.discovery.onvif.devices import Address, rivals
from driver.discovery.reach import Ip, Reach, parse_networks, services_around, unmapped

REACH = Reach(parse_networks("10.20.0.0/16, fd00::/8"), parse_networks("10.96.0.0/12"))
SOURCE = ip_address("10.0.0.1")
"""This machine's."""

LOCAL = ip_address("169.254.9.9")


@pytest.mark.parametrize(
    ("address", "sender", "source", "why"),
    [
        ("10.0.0.7", "10.0.0.7", SOURCE, None),
        ("10.0.0.7", "::ffff:10.0.0.7", SOURCE, None),
        ("fe80::2", "fe80::2%3", ip_address("fe80::1%3"), None),
        ("169.254.1.1", "169.254.1.1", LOCAL, None),
        ("10.20.0.7", "10.0.0.7", SOURCE, None),
        ("10.20.0.7", "10.20.0.7", ip_address("10.20.0.7"), None),
        ("fd00::7", "10.0.0.7", None, None),
        ("10.0.0.8", "10.0.0.7", SOURCE, "is neither the sender's nor"),
        ("127.0.0.1", "10.0.0.7", SOURCE, "is neither the sender's nor"),
        ("127.0.0.1", "127.0.0.1", ip_address("127.0.0.1"), "is this machine's own"),
        ("::ffff:127.0.0.1", "127.0.0.1", SOURCE, "is this machine's own"),
        ("::1", "::1", None, "is this machine's own"),
        ("10.0.0.1", "10.0.0.1", SOURCE, "is this machine's own"),
        ("169.254.169.254", "169.254.169.254", SOURCE, "is link-local"),
        ("169.254.169.254", "169.254.169.254", None, "is link-local"),
        ("10.96.0.1", "10.96.0.1", SOURCE, "is in a network of --service-networks"),
        ("239.255.255.250", "239.255.255.250", SOURCE, "is not the address of a machine"),
        ("0.0.0.0", "0.0.0.0", SOURCE, "is not the address of a machine"),
        ("255.255.255.255", "255.255.255.255", SOURCE, "is not the address of a machine"),
        ("::", "::", None, "is not the address of a machine"),
        ("::ffff:0.0.0.0", "10.0.0.7", None, "is not the address of a machine"),
    ],
)
def test_an_address_is_asked_if_it_is_its_senders_or_named(
    address: str, sender: str, source: Ip | None, why: str | None
) -> None:
    refusal = REACH.refusal_of_multicast(ip_address(address), ip_address(sender), source)

    assert (refusal is None) == (why is None), refusal
    assert (refusal or "").startswith(why or "")


@pytest.mark.parametrize(
    ("told", "asked", "why"),
    [
        ("127.0.0.1", "127.0.0.1", None),
        ("::ffff:127.0.0.1", "127.0.0.1", None),
        ("10.20.0.7", "10.0.0.7", None),
        ("127.0.0.1", "10.0.0.7", "is neither"),
        ("224.0.0.1", "10.0.0.7", "is not the address of a machine"),
    ],
)
def test_whom_a_configuration_names_tells_of_himself(told: str, asked: str, why: str) -> None:
    refusal = REACH.refusal_of_reported(ip_address(told), ip_address(asked))

    assert (refusal or "").startswith(why or "")
    assert (refusal is None) == (why is None)


@given(st.ip_addresses(), st.ip_addresses(), st.none() | st.ip_addresses())
def test_without_settings_nobody_is_asked_but_the_sender(
    address: Ip, sender: Ip, source: Ip | None
) -> None:
    refusal = Reach().refusal_of_multicast(address, sender, source)

    assert refusal is not None or unmapped(address) == unmapped(sender)
    assert Reach().refusal_of_multicast(address, address, address) is not None, "its own"


def test_this_machines_own_addresses_are_known_by_the_way_to_them() -> None:
    assert source_towards(ip_address("127.0.0.1")) == ip_address("127.0.0.1")
    assert str(source_towards(ip_address("127.0.0.7"))).startswith("127.0.0.")
    assert source_towards(ip_address("255.255.255.255")) is None


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("10.96.0.1", "10.96.0.0/12"),
        ("10.43.0.1", "10.43.0.0/16"),
        ("fd00:10:96::1", "fd00:10:96::/108"),
        ("api.example.com", ""),
        ("", ""),
    ],
)
def test_the_service_network_is_guessed_from_the_api_servers_service(
    host: str, network: str
) -> None:
    assert services_around(host) == parse_networks(network)


def test_of_two_with_one_uuid_the_holder_stays_and_may_have_several_addresses() -> None:
    def second(uuid: str, sender: str, first: str = "u") -> dict[Address, str]:
        named = ["camera", "fe80::7", "::ffff:10.0.0.8"]
        holder = (Address("http://first/", first), "10.0.0.7", named)
        return rivals([holder, (Address("http://second/", uuid), sender, ())])

    assert second("u", "10.0.0.6") == {Address("http://second/", "u"): "10.0.0.7"}
    for sender in ("10.0.0.7", "10.0.0.8", "::ffff:10.0.0.7", "fe80::7"):
        assert second("u", sender) == {}
    assert second("v", "10.0.0.6") == {}
    assert second("", "10.0.0.6", first="") == {}
