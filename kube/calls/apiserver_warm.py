"""One connection to the API server that is ready for whoever asks next.

A connection is closed when nobody used it for a while: here after `IDLE_SECONDS`, by API servers
after 90 s, by load balancers often after 60. A new one takes many times as long as a small read.
A node's driver is asked every few minutes, and then somebody waits for a container to start.

    keep_warm ──GET /version──► the connection that has been idle the longest ──► idle again

Of several idle connections each is used in turn, and all but one end. `/version` is a constant
of the API server, which every account may read, and which audit policies usually leave out; the
answer that it may not be read would do, too. 5,000 nodes ask for it about 117 times a second.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import NoReturn

from kube.calls.apiserver import ApiClient
from kube.calls.errors import ApiError

logger = logging.getLogger(__name__)

WARM_SECONDS = 45.0
"""How long a connection is idle at most; shorter by a tenth at random, so that the nodes of a
cluster that was started at once do not ask at once."""


async def keep_warm(client: ApiClient) -> NoReturn:
    """Use a connection from time to time until cancelled; what fails is tried again."""
    while True:
        await asyncio.sleep(WARM_SECONDS * random.uniform(0.9, 1.0))
        try:
            await client.server()
        except ApiError as error:
            logger.debug("no connection is kept warm: %s", error)
