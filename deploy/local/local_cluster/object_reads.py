"""Reads of objects by the names that kubectl takes, without kubectl where that can be.

Connections are kept: a look takes 4.7 ms of CPU on a new one and 0.4 on one that is kept (two
cores, 2026-11), and a story that waits looks ten times a second.
"""

from __future__ import annotations

import json
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from subprocess import CompletedProcess
from typing import Any

from local_cluster import api_resources
from local_cluster.api_resources import ApiResource
from local_cluster.apiserver import ApiServer
from local_cluster.errors import ApiError

NOT_FOUND = 404
Object = dict[str, Any]


class ObjectReads:
    """Asks kubectl only for what it alone knows: several kinds at one time, or why one is none."""

    def __init__(
        self, connect: Callable[[], ApiServer], kubectl: Callable[..., CompletedProcess[str]]
    ) -> None:
        self._connect = connect
        self._kubectl = kubectl
        self._served: Mapping[str, ApiResource] = {}
        # Those that no thread uses just now.
        self._idle: deque[ApiServer] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def close(self) -> None:
        """Close all connections; later reads open others."""
        _close_all(self._idle)

    def read(self, path: str) -> Any:
        """What a GET of a path answers. Raises ApiError for error statuses, OSError without one."""
        with self._connection() as api:
            return api.get(path)

    def path_of(self, kind: str, namespace: str | None) -> str | None:
        """The path of all objects of a kind; None if the API server does not serve it."""
        resource = self._resource(kind)
        return resource.path(namespace) if resource else None

    @contextmanager
    def _connection(self) -> Iterator[ApiServer]:
        """A connection of the caller's own, kept unless it breaks."""
        try:
            api = self._idle.pop()
        except IndexError:
            api = self._connect()
        try:
            yield api
        except BaseException as error:
            if not isinstance(error, ApiError):
                api.close()
            raise
        finally:
            self._idle.append(api)

    def one(self, kind: str, name: str, namespace: str | None) -> Object | None:
        """One object, or None when it does not exist; without a namespace of `default`."""
        if (resource := self._resource(kind)) is None:
            where = ("--namespace", namespace) if namespace else ()
            done = self._kubectl("get", kind, name, *where, "-o", "json", "--ignore-not-found")
            return json.loads(done.stdout) if done.stdout.strip() else None
        try:
            return api_resources.shown(self.read(resource.path(namespace or "default", name)))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def all(self, kind: str, namespace: str | None, selector: str | None) -> list[Object]:
        """Objects of one namespace, or of all."""
        if (resource := self._resource(kind)) is None:
            where = ("--namespace", namespace) if namespace else ("--all-namespaces",)
            chosen = ("--selector", selector) if selector else ()
            done = self._kubectl("get", kind, *where, *chosen, "-o", "json")
            return list(json.loads(done.stdout)["items"])
        query = {"labelSelector": selector} if selector else {}
        return api_resources.listed(self.read(resource.path(namespace, **query)))

    def _resource(self, kind: str) -> ApiResource | None:
        try:
            if kind not in self._served and "," not in kind:
                with self._connection() as api:
                    self._served = api_resources.served(api)
        except (ApiError, OSError):
            return None
        return self._served.get(kind)


def _close_all(idle: deque[ApiServer]) -> None:
    while idle:
        idle.pop().close()
