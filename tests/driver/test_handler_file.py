"""The file of discovery handlers."""

from __future__ import annotations

import pytest

from driver.handler_file import dump, load
from driver.handler_table import Endpoint, Registration

HANDLERS = (
    Registration(Endpoint("onvif", "10.0.0.7:10000"), network=True, shared=True),
    Registration(Endpoint("udev", "/var/lib/akri/udev.sock"), network=False, shared=False),
)


def test_what_is_written_is_read() -> None:
    assert load(dump(HANDLERS)) == HANDLERS


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'{"handlers": 7}',
        b'{"handlers": [7]}',
        b'{"handlers": [{"name": "a"}]}',
        dump(HANDLERS)[:-20],
        dump(HANDLERS).replace(b"true", b'"yes"'),
    ],
)
def test_a_broken_file_is_none(content: bytes) -> None:
    assert load(content) == ()
