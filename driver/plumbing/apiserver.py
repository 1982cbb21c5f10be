"""The API server: who the driver is there, and writes of many objects."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from driver.api import (
    DRIVER_NAME,
    NodeName,
)
from kube.api import (
    ApiClient,
    ApiError,
    Backoff,
    NotFoundError,
    Preconditions,
    Resource,
)

WRITES_AT_ONCE = 8

BACKOFF = Backoff(first_seconds=0.2, cap_seconds=10.0)

_FIELD_MANAGER_LIMIT = 128

logger = logging.getLogger(__name__)

T = TypeVar("T")


def field_manager(node: NodeName) -> str:
    """The name under which a node's driver owns fields: one manager for each node."""
    name = f"{DRIVER_NAME}/{node}"
    if len(name) <= _FIELD_MANAGER_LIMIT:
        return name
    digest = hashlib.blake2b(node.encode(), digest_size=8).hexdigest()
    return f"{name[: _FIELD_MANAGER_LIMIT - len(digest) - 1]}-{digest}"


async def delete(
    client: ApiClient,
    resource: Resource,
    name: str,
    preconditions: Preconditions,
    namespace: str = "",
) -> None:
    """Delete what may be gone already: the purpose is reached either way."""
    try:
        await client.delete(resource.at(name, namespace), preconditions=preconditions)
    except NotFoundError:
        logger.debug("already deleted %s %s", resource.plural, name)


async def each(items: Iterable[T], write: Callable[[T], Awaitable[None]]) -> None:
    """Do all of them, some at once; one that fails does not keep the others from being tried.

    Raises:
        ApiError: The first failure, when all were tried.
    """
    limit = asyncio.Semaphore(WRITES_AT_ONCE)

    async def limited(item: T) -> None:
        async with limit:
            await write(item)

    results = await asyncio.gather(*map(limited, items), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:  # Others than the API server's are told first.
        raise min(failures, key=lambda failure: isinstance(failure, ApiError))


async def until_done(work: Callable[[], Awaitable[T]], *, name: str) -> T:
    """Do this once, however often the API server has to be asked, and return what it says."""
    failures = 0
    while True:
        try:
            return await work()
        except ApiError as error:
            failures += 1
            logger.warning("%s failed attempt=%d error=%s", name, failures, error)
            seconds = BACKOFF.delay(failures, random.random)
            await asyncio.sleep(max(seconds, error.retry_after_seconds))
