"""One connection to the API server that is ready for the next call.

An idle connection is closed: here after `IDLE_SECONDS`, by API servers after 90 s, by load
balancers often after 60 s. Opening one takes many times as long as a small read. A node's driver
calls the API server every few minutes, and then the start of a container waits for the answer.

    keep_warm ──GET /version──► the connection that has been idle the longest ──► idle again

Several idle connections are used in turn, so that all but one exceed `IDLE_SECONDS` and end.
`/version` is a constant of one API server, every account may read it, and audit policies usually
leave it out. A refusal keeps the connection, too. 5,000 nodes send about 117 of these requests a
second.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NoReturn

from kube.calls.apiserver import ApiClient
from kube.calls.errors import ApiError

logger = logging.getLogger(__name__)

WARM_SECONDS = 45.0
"""The longest time for which the connection is idle. It is shortened by up to a tenth at random,
so that nodes that started together do not ask together."""


def _ignore(_: str) -> None:
    """Takes a version that no caller wants."""


async def keep_warm(client: ApiClient, on_version: Callable[[str], None] = _ignore) -> NoReturn:
    """Use a connection every `WARM_SECONDS` until cancelled; failures are ignored.

    Args:
        client: The client whose connection is used.
        on_version: Called each time with the `release` of the API server.
    """
    while True:
        await asyncio.sleep(WARM_SECONDS * random.uniform(0.9, 1.0))
        try:
            server = await client.server()
        except ApiError as error:
            logger.debug("no connection is kept warm: %s", error)
        else:
            on_version(server.release)
