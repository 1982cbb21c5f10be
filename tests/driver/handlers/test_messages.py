"""Messages of the discovery contract: what handlers may say, and what is made of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.devices import Device, DeviceSpec, Mount
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.messages import (
    LARGEST_PROPERTIES,
    LONGEST_PROPERTY,
    devices_of,
    properties_of,
    registration_of,
    request_of,
    response_of,
    target_of,
)
from driver.handlers.registrations import Endpoint, Registration
from driver.preparing.grants.claims import clash
from tests.driver.claim_builders import an_instance

UDS = v0.RegisterDiscoveryHandlerRequest.UDS
NETWORK = v0.RegisterDiscoveryHandlerRequest.NETWORK

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
PLACES = TEXTS.filter(lambda text: text == "/" or not text.endswith("/"))
DEVICES = st.builds(
    Device,
    id=TEXTS.filter(bool),
    properties=st.dictionaries(TEXTS, TEXTS, max_size=3),
    mounts=st.lists(st.builds(Mount, PLACES, TEXTS, st.booleans()), max_size=2).map(tuple),
    device_specs=st.lists(st.builds(DeviceSpec, PLACES, TEXTS, TEXTS), max_size=2).map(tuple),
)


@settings(max_examples=50)
@given(st.lists(DEVICES, max_size=5, unique_by=lambda device: device.id))
def test_devices_come_through_the_wire_as_they_are_and_sorted(devices: list[Device]) -> None:
    wire = response_of(devices).SerializeToString()

    assert devices_of(v0.DiscoverResponse.FromString(wire)) == (
        tuple(sorted(devices, key=lambda device: device.id)),
        (),
    )


@pytest.mark.parametrize(
    ("written", "taken"),
    [("/shelf/", "/shelf"), ("/", "/"), ("", ""), ("//", "/"), ("/a//", "/a/")],
)
def test_a_place_in_a_container_has_one_name(written: str, taken: str) -> None:
    mount, spec = v0.Mount(container_path=written), v0.DeviceSpec(container_path=written)
    response = v0.DiscoverResponse(devices=[v0.Device(id="a", mounts=[mount], device_specs=[spec])])

    ((device,), _) = devices_of(response)

    assert (device.mounts[0].container_path, device.device_specs[0].container_path) == (
        taken,
        taken,
    )


def test_a_slash_hides_no_other_thing_at_the_same_place() -> None:
    mounts = [v0.Mount(container_path=f"/in{end}", host_path=f"/srv{end}a") for end in ("", "/")]
    response = v0.DiscoverResponse(
        devices=[v0.Device(id=mount.host_path, mounts=[mount]) for mount in mounts]
    )

    devices, _ = devices_of(response)

    assert "would both be /in in the container" in clash(
        (device.id, an_instance(mounts=device.mounts)) for device in devices
    )


@settings(max_examples=50)
@given(TEXTS, st.dictionaries(TEXTS, st.none() | st.binary(max_size=10), max_size=3))
def test_requests_come_through_the_wire_as_they_are(
    details: str, properties: dict[str, bytes | None]
) -> None:
    wire = request_of(details, properties).SerializeToString()

    request = v0.DiscoverRequest.FromString(wire)
    assert request.discovery_details == details
    assert properties_of(request) == properties


def test_the_first_of_two_devices_with_one_id_counts() -> None:
    twice = [v0.Device(id="a", properties={"N": n}) for n in "12"]

    devices, problems = devices_of(v0.DiscoverResponse(devices=[v0.Device(), *twice]))

    assert devices == (Device("a", {"N": "1"}),)
    assert problems == (
        "A device without an id is left out.",
        'Device "a" comes twice; the first one counts.',
    )


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("A\0", "v", "holds a NUL"),
        ("A", "v\0", "holds a NUL"),
        ("A", "v" * (LONGEST_PROPERTY + 1), f"more than {LONGEST_PROPERTY} bytes"),
        ("A" * (LONGEST_PROPERTY + 1), "v", f"more than {LONGEST_PROPERTY} bytes"),
    ],
)
def test_properties_that_nobody_can_be_given_are_left_out(
    name: str, value: str, problem: str
) -> None:
    device = v0.Device(id="x" * (1 << 20), properties={name: value, "B": "kept"})

    (found,), (sentence,) = devices_of(v0.DiscoverResponse(devices=[device]))

    assert found.properties == {"B": "kept"}
    assert problem in sentence
    assert len(sentence) < 300


def test_properties_are_taken_in_order_until_there_is_no_room() -> None:
    size = LONGEST_PROPERTY - 1
    count = LARGEST_PROPERTIES // LONGEST_PROPERTY
    properties = dict.fromkeys("ABCDEFGH", "v" * size)

    (found,), problems = devices_of(
        v0.DiscoverResponse(devices=[v0.Device(id="a", properties=properties)])
    )

    assert list(found.properties) == list("ABCDEFGH"[:count])
    assert len(problems) == len(properties) - count


def test_names_that_are_no_variables_stay_properties() -> None:
    properties = {"a=b": "1", "my prop": "2", "": "3"}

    (device,), problems = devices_of(
        v0.DiscoverResponse(devices=[v0.Device(id="a", properties=properties)])
    )

    assert device.properties == properties
    assert problems == ()


def test_bytes_that_are_no_text_are_not_sent() -> None:
    odd = Device("net/odd\udcff")
    lost = Device("b", device_specs=(DeviceSpec("/dev/\udcff", "/dev/\udcff"),))
    a = Device("a", {"SERIAL": "\udcff", "B": "kept"})

    sent, escaped = response_of([a, lost, odd]).devices

    assert escaped.id == "net/odd\\udcff"
    assert dict(sent.properties) == {"B": "kept"}


@pytest.mark.parametrize(
    ("kind", "endpoint", "address", "target"),
    [
        (UDS, "/var/lib/akri/a.sock", "/var/lib/akri/a.sock", "unix:/var/lib/akri/a.sock"),
        (UDS, "unix:///a.sock", "/a.sock", "unix:/a.sock"),
        (NETWORK, "http://10.0.0.7:10000", "10.0.0.7:10000", "dns:///10.0.0.7:10000"),
        (NETWORK, "10.0.0.7:10000", "10.0.0.7:10000", "dns:///10.0.0.7:10000"),
        (NETWORK, "http://[fd00::7]:10000", "[fd00::7]:10000", "dns:///[fd00::7]:10000"),
        (NETWORK, "http://onvif.akri:80/", "onvif.akri:80", "dns:///onvif.akri:80"),
    ],
)
def test_endpoints_are_read_as_akris_handlers_write_them(
    kind: v0.RegisterDiscoveryHandlerRequest.EndpointType.ValueType,
    endpoint: str,
    address: str,
    target: str,
) -> None:
    request = v0.RegisterDiscoveryHandlerRequest(
        name="onvif", endpoint=endpoint, endpoint_type=kind, shared=True
    )

    registration = registration_of(request)

    expected = Registration(Endpoint("onvif", address), network=kind == NETWORK, shared=True)
    assert registration == expected
    assert target_of(expected) == target


@settings(max_examples=100)
@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from([0, 1, 2]))
def test_any_registration_is_taken_or_refused_with_a_sentence(
    name: str, endpoint: str, kind: int
) -> None:
    try:
        request = v0.RegisterDiscoveryHandlerRequest(
            name=name,
            endpoint=endpoint,
            endpoint_type=kind,  # type: ignore[arg-type]
        )
    except UnicodeEncodeError:
        return
    registration = registration_of(request)

    assert isinstance(registration, Registration) or registration.isprintable()
