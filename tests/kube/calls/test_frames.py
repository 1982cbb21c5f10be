"""Lines of a watch, and what they say."""

from __future__ import annotations

import json

import msgspec
import pytest

from kube.calls.errors import GoneError, ServerFaultError
from kube.calls.frames import (
    BadFrameError,
    Bookmark,
    Failed,
    Observed,
    Removed,
    frames_of,
    parse_frame,
)
from kube.objects import MalformedObjectError, identity_of
from tests.kube.builders import an_object


class Metadata(msgspec.Struct, rename="camel"):
    """What identifies an object."""

    name: str
    uid: str
    namespace: str | None = None
    resource_version: str | None = None


class Shape(msgspec.Struct):
    """Nothing else is read."""

    metadata: Metadata


def line(kind: object, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def test_each_type_becomes_its_frame() -> None:
    obj = an_object()

    assert parse_frame(line("ADDED", obj)) == Observed(obj)
    assert parse_frame(line("MODIFIED", obj)) == Observed(obj)
    assert parse_frame(line("DELETED", obj)) == Removed(obj)
    assert parse_frame(line("BOOKMARK", {"metadata": {"resourceVersion": "7"}})) == Bookmark(7)


@pytest.mark.parametrize(("code", "kind"), [(410, GoneError), (500, ServerFaultError)])
def test_error_event_carries_the_error_of_its_status(code: int, kind: type) -> None:
    frame = parse_frame(line("ERROR", {"kind": "Status", "code": code, "message": "m"}))

    assert isinstance(frame, Failed)
    assert type(frame.error) is kind
    assert frame.error.status == code


@pytest.mark.parametrize(
    "text",
    [
        b"garbage",
        b"[]",
        b'{"type": "ADDED"}',
        b'{"type": "UNHEARD-OF", "object": {}}',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "x"}}}',
        b'{"type": "BOOKMARK", "object": null}',
        b'{"type": "ERROR", "object": {"code": "x"}}',
        b'{"type": "ERROR", "object": null}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_anything_else_is_a_bad_frame(text: bytes) -> None:
    with pytest.raises(BadFrameError):
        parse_frame(text)


def test_objects_are_read_as_a_shape() -> None:
    shaped = Shape(Metadata("a", "uid-a", "ns", "7"))

    assert frames_of(Shape)(line("MODIFIED", an_object("a", 7))) == Observed(shaped)
    assert frames_of(Shape)(line("DELETED", an_object("a", 7))) == Removed(shaped)
    assert identity_of(shaped) == identity_of(an_object("a", 7))


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("MODIFIED", {"metadata": {"name": 5, "uid": "uid-a"}}),
        ("BOOKMARK", {"metadata": {"resourceVersion": "7"}}),
        ("BOOKMARK", {"metadata": {"name": "", "uid": "", "resourceVersion": "7"}}),
    ],
)
def test_what_does_not_fit_the_shape_is_read_as_it_is(kind: str, obj: object) -> None:
    assert frames_of(Shape)(line(kind, obj)) == parse_frame(line(kind, obj))


def test_error_event_has_no_shape() -> None:
    status = {"kind": "Status", "code": 410, "metadata": {"name": "", "uid": ""}}

    frame = frames_of(Shape)(line("ERROR", status))

    assert isinstance(frame, Failed)
    assert isinstance(frame.error, GoneError)


@pytest.mark.parametrize("missing", ["name", "uid"])
def test_shape_without_identity_is_malformed(missing: str) -> None:
    shaped = Shape(Metadata("a", "uid-a", "ns", "7"))
    setattr(shaped.metadata, missing, "")

    with pytest.raises(MalformedObjectError):
        identity_of(shaped)
