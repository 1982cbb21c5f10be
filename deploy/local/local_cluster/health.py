"""Asks parts whether they are healthy, and waits until they are."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from local_cluster.parts import AliveProbe, HttpProbe, Probe, SocketProbe

POLL_SECONDS = 0.1
MOST_SECONDS = 2.0
"""Between two looks that take long."""
# Parts sign their own health endpoints' certificates; only the answer matters here.
_TRUST_ALL = ssl._create_unverified_context()  # noqa: SLF001


def is_healthy(probe: Probe, root: Path) -> bool:
    """`root` is the root folder as the part sees it."""
    match probe:
        case HttpProbe(url):
            return _answers(url)
        case SocketProbe(path):
            return _listens(root / path.lstrip("/"))
        case AliveProbe():
            return True
        case _:
            assert_never(probe)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until true; False when time is up. The condition is asked at least once.

    Half of the time nothing is asked: a list of thousands of objects costs the API server so much
    that schedulers could not renew their leases.
    """
    deadline = time.monotonic() + seconds
    asked_at = time.monotonic()
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(max(POLL_SECONDS, min(time.monotonic() - asked_at, MOST_SECONDS)))
        asked_at = time.monotonic()
    return True


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_TRUST_ALL)
    )
    try:
        with opener.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        return False


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        try:
            client.connect(str(path))
        except OSError as error:
            # Of another type, as udevd's: there is somebody all the same.
            return error.errno == errno.EPROTOTYPE
    return True
