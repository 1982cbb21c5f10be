"""The API server authenticates a viewer and says what the viewer may list.

    token ──► TokenReview ──► viewer ──► SubjectAccessReview ──► may the viewer list this?

Both answers are cached for 30 s: a viewer whose right is removed sees the rows for that long.

A client of the page may send any number of tokens. All unknown tokens share one place and one
cache, so that known viewers wait only for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from cachetools import LRUCache, TTLCache

from kube.calls.api import ApiClient, ApiError, WriteOptions
from kube.client_semaphore import ClientSemaphore
from kube.kinds import ACCESS_REVIEWS
from kube.objects import JsonObject
from kube.resources import Resource
from scheduler_plugin.dashboard.parts import Access

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)

REMEMBERED_SECONDS = 30.0
MOST_REMEMBERED = 4096
AT_ONCE = 4
AT_ONCE_FOR_ONE = 2
"""How many reviews run concurrently, of all viewers and of each. All tokens without a known user
count as one viewer."""

UNKNOWN_USER = ""

LONGEST_TOKEN = 16_384
WAIT_SECONDS = 5.0
WRITE = WriteOptions(timeout_seconds=WAIT_SECONDS)


class NotSignedInError(Exception):
    """Raised with a sentence if the API server does not know the token."""


class CannotReviewError(Exception):
    """Raised with a sentence if the API server does not answer a review."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The user of a token, as the API server reports it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Reviews:
    """Asks the API server, and caches its answers for `REMEMBERED_SECONDS`."""

    def __init__(
        self,
        client: ApiClient,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._client = client
        self._places: ClientSemaphore[str] = ClientSemaphore(AT_ONCE, AT_ONCE_FOR_ONE)
        self._viewers: TTLCache[bytes, Viewer] = TTLCache(
            MOST_REMEMBERED, REMEMBERED_SECONDS, monotonic
        )
        self._may: TTLCache[tuple[Viewer, Access], bool] = TTLCache(
            MOST_REMEMBERED, REMEMBERED_SECONDS, monotonic
        )
        self._unknown_tokens: TTLCache[bytes, str] = TTLCache(
            MOST_REMEMBERED, REMEMBERED_SECONDS, monotonic
        )
        # The users of earlier tokens, for when these are reviewed again.
        self._names: LRUCache[bytes, str] = LRUCache(MOST_REMEMBERED)

    async def viewer(self, token: str) -> Viewer:
        """The user of a token.

        Raises:
            NotSignedInError: If the token has no user, or is not valid any more.
            CannotReviewError: If the API server does not answer.
        """
        if not token or len(token) > LONGEST_TOKEN:
            raise NotSignedInError("A token of this cluster is needed.")
        key = sha256(token.encode()).digest()
        known = self._viewers.get(key) or self._unknown_tokens.get(key)
        found = known or await self._look_at(key, token)
        if isinstance(found, str):
            raise NotSignedInError(found)
        return found

    async def _look_at(self, key: bytes, token: str) -> Viewer | str:
        """Review a token, and cache the answer."""
        body = {"metadata": {}, "spec": {"token": token}}
        found = _viewer(await self._ask(TOKEN_REVIEWS, body, self._names.get(key, UNKNOWN_USER)))
        if isinstance(found, str):
            self._unknown_tokens[key] = found
            self._names.pop(key, None)
        else:
            self._viewers[key], self._names[key] = found, found.name
        return found

    async def may(self, viewer: Viewer, access: Access) -> bool:
        """Whether a viewer may list a kind.

        Raises:
            CannotReviewError: If the API server does not answer.
        """
        key = (viewer, access)
        if (known := self._may.get(key)) is not None:
            return known
        allowed = self._may[key] = await self._is_allowed(viewer, access)
        return allowed

    async def _is_allowed(self, viewer: Viewer, access: Access) -> bool:
        spec = {
            "user": viewer.name,
            "uid": viewer.uid,
            "groups": list(viewer.groups),
            "extra": {name: list(values) for name, values in viewer.extra},
            "resourceAttributes": access.attributes(),
        }
        answer = await self._ask(ACCESS_REVIEWS, {"metadata": {}, "spec": spec}, viewer.name)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _ask(self, resource: Resource, body: JsonObject, user: str) -> JsonObject:
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._places.of(user):
                return await self._client.create(resource, body, options=WRITE)
        except TimeoutError:
            raise CannotReviewError(
                "Too many viewers sign in concurrently: try again in a moment."
            ) from None
        except ApiError as error:
            message = f"The API server does not say what you may see: {error}"
            raise CannotReviewError(message) from error


def _viewer(review: JsonObject) -> Viewer | str:
    status = review.get("status") or {}
    user = status.get("user") or {}
    if not status.get("authenticated") or not user.get("username"):
        return "The cluster does not know this token: it is mistyped, or it has expired."
    return Viewer(
        name=user["username"],
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra=tuple(sorted((k, tuple(v)) for k, v in (user.get("extra") or {}).items())),
    )
