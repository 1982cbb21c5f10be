"""Objects of Kubernetes, read as shapes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.shapes.claims import Claim
from kube.shapes.events import Event
from kube.shapes.full_claims import FullClaim
from kube.shapes.metadata import metadata_of, named_metadata
from kube.shapes.pods import Pod
from kube.shapes.reading import UnreadableError, own_text, read_as
from kube.shapes.slices import Slice

METADATA = {"name": "a", "namespace": "ns", "uid": "u"}
ALLOCATED: dict[str, Any] = {
    "metadata": METADATA,
    "status": {
        "allocation": {
            "devices": {
                "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}],
                "config": [{"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}}],
            }
        },
        "reservedFor": [{"resource": "pods", "name": "first", "uid": "u-1"}],
    },
}


def a_pod(**parts: Any) -> Pod:
    return read_as(Pod, {"metadata": METADATA, **parts})


def test_what_was_read_is_not_read_again() -> None:
    pod = a_pod()

    assert read_as(Pod, pod) is pod


def test_null_is_as_good_as_absent_and_what_is_not_named_is_left_alone() -> None:
    assert a_pod(spec=None, status={"phase": None, "podIPs": 7}) == a_pod(status={})


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        ({"metadata": {"name": "a", "uid": 7}}, "metadata.uid"),
        ({"metadata": METADATA, "spec": {"containers": [{"name": 1}]}}, "spec.containers[0].name"),
        ([], ""),
    ],
)
def test_an_odd_object_is_told_by_its_field(obj: Any, path: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        read_as(Pod, obj)

    assert raised.value.path == path
    assert str(raised.value) == f"{path}: {raised.value.message}"


def test_what_every_stored_object_has_must_be_there() -> None:
    assert (own_text("x", "uid"), metadata_of({"metadata": METADATA}).uid) == ("x", "u")
    assert named_metadata({"metadata": {"name": "a"}}).uid is None
    for absent in (None, ""):
        with pytest.raises(UnreadableError, match="uid: It must be set"):
            own_text(absent, "uid")
    with pytest.raises(UnreadableError, match="uid"):
        metadata_of({"metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ({}, []),
        ({"spec": {"resourceClaims": [{"name": "e", "resourceClaimName": "c"}]}}, ["c"]),
        (
            {
                "spec": {"resourceClaims": [{"name": "e", "resourceClaimTemplateName": "t"}]},
                "status": {
                    "resourceClaimStatuses": [{"name": "e", "resourceClaimName": "a-e"}],
                    "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
                },
            },
            ["a-e", "extended"],
        ),
    ],
)
def test_a_pod_names_its_claims(parts: dict[str, Any], names: list[str]) -> None:
    assert list(a_pod(**parts).claim_names) == names


@pytest.mark.parametrize(
    ("phase", "has_ended"), [("Running", False), ("Failed", True), ("Succeeded", True)]
)
def test_a_pod_has_ended_by_its_phase(phase: str, has_ended: bool) -> None:
    assert a_pod(status={"phase": phase}).has_ended is has_ended


@pytest.mark.parametrize("shape", [Claim, FullClaim])
def test_a_claim_has_devices_and_consumers(shape: type[Claim | FullClaim]) -> None:
    claim, none = read_as(shape, ALLOCATED), read_as(shape, {"metadata": METADATA})

    assert [result.device for result in claim.results] == ["x"]
    assert [consumer.name for consumer in claim.consumers] == ["first"]
    assert (list(none.results), list(none.consumers)) == ([], [])


def test_who_sees_a_device_says_its_slice_or_the_device_itself() -> None:
    devices = [{"name": "d", "allNodes": True}]
    for per_device in (True, False):
        spec = {"nodeName": "n", "perDeviceNodeSelection": per_device, "devices": devices}
        found = read_as(Slice, {"metadata": {"name": "s"}, "spec": spec}).spec
        assert found is not None
        assert found.devices is not None
        assert bool(found.place_of(found.devices[0]).all_nodes) is per_device


@pytest.mark.parametrize(
    ("fields", "at", "sentence"),
    [
        ({"eventTime": "2", "note": "n", "series": {"lastObservedTime": "3"}}, "3", "n"),
        ({"eventTime": "2", "deprecatedLastTimestamp": "1"}, "2", ""),
        ({"lastTimestamp": "1", "message": "m", "involvedObject": {"name": "x"}}, "1", "m"),
        ({}, "", ""),
    ],
)
def test_an_event_is_read_in_either_group(fields: Any, at: str, sentence: str) -> None:
    event = read_as(Event, fields)

    assert (event.last_time, event.sentence) == (at, sentence)
    assert (event.about.name or "") == fields.get("involvedObject", {}).get("name", "")


@pytest.mark.parametrize("shape", [Pod, Claim, FullClaim])
def test_bytes_are_read_as_objects_are(shape: type[Any]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(ALLOCATED), type=shape) == read_as(
        shape, ALLOCATED
    )
