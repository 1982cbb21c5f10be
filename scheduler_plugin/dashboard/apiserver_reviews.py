"""The API server says who a viewer is, and what he may list: the page lets nobody see more.

    token ──► TokenReview ──► viewer ──► SubjectAccessReview ──► may he list this?

Both are remembered for half a minute: so long may somebody see what he no longer may.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cachetools import TTLCache

from kube.api import ACCESS_REVIEWS, ApiClient, ApiError, JsonObject, Resource, WriteOptions
from scheduler_plugin.dashboard.parts import Access

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)

REMEMBERED_SECONDS = 30.0
MOST_REMEMBERED = 4096
AT_ONCE = 4
"""How many reviews are under way at one time: strangers may send what they like."""

LONGEST_TOKEN = 16_384
WAIT_SECONDS = 5.0
WRITE = WriteOptions(timeout_seconds=WAIT_SECONDS)


class NotSignedInError(Exception):
    """Raised with a sentence where the API server does not know whose token it is."""


class CannotReviewError(Exception):
    """Raised with a sentence where the API server does not say."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whose token it is, as the API server says it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Reviews:
    """Asks the API server, and remembers for a short time what it said."""

    def __init__(
        self,
        client: ApiClient,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._said: TTLCache[Hashable, Any] = TTLCache(
            MOST_REMEMBERED, REMEMBERED_SECONDS, monotonic
        )

    async def viewer(self, token: str) -> Viewer:
        """Whose token it is.

        Raises:
            NotSignedInError: It is nobody's, or not valid any more.
            CannotReviewError: The API server does not say.
        """
        if not token or len(token) > LONGEST_TOKEN:
            raise NotSignedInError("A token of this cluster is needed.")
        key = sha256(token.encode()).digest()
        if key not in self._said:
            body = {"metadata": {}, "spec": {"token": token}}
            self._said[key] = _viewer(await self._ask(TOKEN_REVIEWS, body))
        found: Viewer | str = self._said[key]
        if isinstance(found, str):
            raise NotSignedInError(found)
        return found

    async def may(self, viewer: Viewer, access: Access) -> bool:
        """Whether a viewer may list a kind.

        Raises:
            CannotReviewError: The API server does not say.
        """
        key = (viewer, access)
        if key not in self._said:
            spec = {
                "user": viewer.name,
                "uid": viewer.uid,
                "groups": list(viewer.groups),
                "extra": {name: list(values) for name, values in viewer.extra},
                "resourceAttributes": access.attributes(),
            }
            answer = await self._ask(ACCESS_REVIEWS, {"metadata": {}, "spec": spec})
            self._said[key] = bool((answer.get("status") or {}).get("allowed"))
        return bool(self._said[key])

    async def _ask(self, resource: Resource, body: JsonObject) -> JsonObject:
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._turns:
                return await self._client.create(resource, body, options=WRITE)
        except TimeoutError:
            raise CannotReviewError("Too many ask at one time who they are.") from None
        except ApiError as error:
            message = f"The API server does not say what you may see: {error}"
            raise CannotReviewError(message) from error


def _viewer(review: JsonObject) -> Viewer | str:
    status = review.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return "The cluster does not know this token: it is mistyped, or its time is over."
    return Viewer(
        name=user["username"],
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra=tuple(sorted((k, tuple(v)) for k, v in (user.get("extra") or {}).items())),
    )
