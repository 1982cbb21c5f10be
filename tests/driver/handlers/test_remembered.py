"""The file of discovery handlers."""

from __future__ import annotations

import pytest

from driver.handlers.registrations import Endpoint, Registration, Remembered
from driver.handlers.remembered import dump, load, load_removed

HANDLERS = (
    Remembered(
        Registration(Endpoint("udev", "/var/lib/akri/udev.sock"), network=False, shared=False), 2
    ),
    Remembered(Registration(Endpoint("onvif", "10.0.0.7:10000"), network=True, shared=True)),
)


def test_what_is_written_is_read() -> None:
    content = dump(HANDLERS, {"shelf"})
    assert load(content) == HANDLERS
    assert load_removed(content) == {"shelf"}


def test_a_file_of_a_driver_that_counted_no_runs_is_read() -> None:
    entry = '{"name": "udev", "address": "/a.sock", "network": false, "shared": false}'

    (remembered,) = load(f'{{"version": 1, "handlers": [{entry}]}}'.encode())

    assert (remembered.registration.endpoint.name, remembered.runs) == ("udev", 0)


def test_a_file_of_a_driver_that_wrote_down_none_that_was_removed_is_read() -> None:
    assert load_removed(b'{"version": 1, "handlers": []}') == set()


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
        dump(HANDLERS).replace(b'"runs": 2', b'"runs": "2"'),
        dump(HANDLERS).replace(b'"runs": 2', b'"runs": -1'),
    ],
)
def test_a_broken_file_is_none(content: bytes) -> None:
    assert load(content) == ()
    assert load_removed(content) == set()
