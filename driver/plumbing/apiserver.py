"""The API server: the driver's field manager, and writes of many objects."""

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
from kube.backoff import Backoff
from kube.calls.api import ApiClient, ApiError, NotFoundError, Preconditions
from kube.resources import Resource

WRITES_AT_ONCE = 8

BACKOFF = Backoff(first_seconds=0.2, cap_seconds=10.0)

_FIELD_MANAGER_LIMIT = 128

logger = logging.getLogger(__name__)

T = TypeVar("T")


def field_manager(node: NodeName) -> str:
    """The field manager of a node's driver; each node has its own."""
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
    """Delete an object; an object that does not exist is fine."""
    try:
        await client.delete(resource.at(name, namespace), preconditions=preconditions)
    except NotFoundError:
        logger.debug("already deleted %s %s", resource.plural, name)


async def each(items: Iterable[T], write: Callable[[T], Awaitable[None]]) -> None:
    """Write all items, `WRITES_AT_ONCE` concurrently; a failed one does not stop the others.

    Raises:
        ApiError: The first failure, after all items were tried.
        Exception: Another failure; it has precedence over an ApiError.
    """
    limit = asyncio.Semaphore(WRITES_AT_ONCE)

    async def limited(item: T) -> None:
        async with limit:
            await write(item)

    results = await asyncio.gather(*map(limited, items), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:  # An error that is not the API server's is a bug, so it is raised first.
        raise min(failures, key=lambda failure: isinstance(failure, ApiError))


async def until_done(work: Callable[[], Awaitable[T]], *, name: str) -> T:
    """Return the result of `work`; retry it after each ApiError, without a limit."""
    failures = 0
    while True:
        try:
            return await work()
        except ApiError as error:
            failures += 1
            logger.warning("%s failed attempt=%d error=%s", name, failures, error)
            seconds = BACKOFF.delay(failures, random.random)
            await asyncio.sleep(max(seconds, error.retry_after_seconds))
