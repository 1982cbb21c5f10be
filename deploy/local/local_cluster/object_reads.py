"""Reads of objects by the names that kubectl takes, without kubectl where that can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

    def one(self, kind: str, name: str, namespace: str | None) -> Object | None:
        """One object, or None when it does not exist; without a namespace of `default`."""
        if (resource := self._resource(kind)) is None:
            where = ("--namespace", namespace) if namespace else ()
            done = self._kubectl("get", kind, name, *where, "-o", "json", "--ignore-not-found")
            return json.loads(done.stdout) if done.stdout.strip() else None
        try:
            with self._connect() as api:
                return api_resources.shown(api.get(resource.path(namespace or "default", name)))
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
        with self._connect() as api:
            return api_resources.listed(api.get(resource.path(namespace, **query)))

    def _resource(self, kind: str) -> ApiResource | None:
        try:
            if kind not in self._served and "," not in kind:
                with self._connect() as api:
                    self._served = api_resources.served(api)
        except (ApiError, OSError):
            return None
        return self._served.get(kind)
