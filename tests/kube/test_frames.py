"""Lines of a watch, and what they say."""

from __future__ import annotations

import json

import pytest

from kube.errors import GoneError, UnavailableError
from kube.frames import BadFrameError, Bookmark, Failed, Observed, Removed, parse_frame
from tests.kube.builders import an_object


def line(kind: object, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def test_each_type_becomes_its_frame() -> None:
    obj = an_object()

    assert parse_frame(line("ADDED", obj)) == Observed(obj)
    assert parse_frame(line("MODIFIED", obj)) == Observed(obj)
    assert parse_frame(line("DELETED", obj)) == Removed(obj)
    assert parse_frame(line("BOOKMARK", {"metadata": {"resourceVersion": "7"}})) == Bookmark(7)


@pytest.mark.parametrize(("code", "kind"), [(410, GoneError), (500, UnavailableError)])
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
