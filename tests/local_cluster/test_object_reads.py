"""Reads keep their connections, each used by one thread at a time."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local_cluster.apiserver import ApiServer
from local_cluster.errors import ApiError
from local_cluster.object_reads import ObjectReads


class FakeApiServer(ApiServer):
    """Answers every path by itself, or raises what it was told to."""

    def __init__(self, answered: Callable[[], object]) -> None:
        """It needs no connection."""
        self.is_closed = False
        self.fails: Exception | None = None
        self._is_answered = answered

    def request(self, method: str, path: str, value: Any = None, **_: str) -> Any:
        self._is_answered()
        if self.fails is not None:
            raise self.fails
        return path

    def close(self) -> None:
        self.is_closed = True


class Connections:
    """All that were opened."""

    def __init__(self, answered: Callable[[], object] = lambda: None) -> None:
        self.opened: list[FakeApiServer] = []
        self._answered = answered
        self.reads = ObjectReads(self._connect, self._kubectl)

    def _connect(self) -> ApiServer:
        self.opened.append(FakeApiServer(self._answered))
        return self.opened[-1]

    def _kubectl(self, *args: str) -> subprocess.CompletedProcess[str]:
        raise AssertionError(f"kubectl {args} is not needed")


def test_one_connection_serves_one_read_after_the_other() -> None:
    connections = Connections()

    assert [connections.reads.read(path) for path in ("/a", "/b")] == ["/a", "/b"]
    assert len(connections.opened) == 1
    assert not connections.opened[0].is_closed


def test_reads_at_one_time_have_a_connection_each() -> None:
    both_ask = threading.Barrier(2, timeout=10)
    connections = Connections(both_ask.wait)
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(connections.reads.read, ("/a", "/b")))

    assert answers == ["/a", "/b"]
    assert len(connections.opened) == 2


@pytest.mark.parametrize(
    ("error", "is_closed"), [(ApiError(404, "NotFound", "no"), False), (OSError("gone"), True)]
)
def test_a_connection_that_breaks_is_closed(error: Exception, is_closed: bool) -> None:
    connections = Connections()
    connections.reads.read("/a")
    connections.opened[0].fails = error

    with pytest.raises(type(error)):
        connections.reads.read("/a")

    assert connections.opened[0].is_closed is is_closed


def test_nothing_is_left_open() -> None:
    ended, collected = Connections(), Connections()
    for connections in (ended, collected):
        connections.reads.read("/a")

    ended.reads.close()
    del collected.reads

    assert ended.opened[0].is_closed
    assert collected.opened[0].is_closed
