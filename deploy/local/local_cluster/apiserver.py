"""A small JSON client of the API server, for what kubectl is too slow for."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from local_cluster.errors import ApiError

MERGE_PATCH = "application/merge-patch+json"
JSON = "application/json"
TOO_MANY_REQUESTS = 429
IDLE_SECONDS = 45.0
"""Half of what the API server keeps a connection that nobody uses."""
NOT_READY_SECONDS = 30.0
"""How long a read is repeated that the API server is not ready for, as kubectl repeats it."""


class ApiServer:
    """Speaks as the cluster's administrator. One instance belongs to one thread."""

    def __init__(self, server: str, pki: Path, certificate: str = "admin") -> None:
        parts = urlsplit(server)
        self._host, self._port = str(parts.hostname), parts.port
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / f"{certificate}.crt", pki / f"{certificate}.key")
        self._connection: http.client.HTTPSConnection | None = None
        self._used_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def create(self, path: str, value: Mapping[str, Any]) -> Any:
        return self.request("POST", path, value)

    def patch(self, path: str, value: Mapping[str, Any]) -> Any:
        return self.request("PATCH", path, value, content_type=MERGE_PATCH)

    def delete(self, path: str) -> Any:
        return self.request("DELETE", path)

    def request(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Any:
        """The decoded answer. Raises ApiError for error statuses, OSError without an answer."""
        body = None if value is None else json.dumps(value)
        headers = {"Accept": accept, "Content-Type": content_type}
        status, text = self._exchange(method, path, body, headers)
        deadline = time.monotonic() + NOT_READY_SECONDS
        # It lists no kind before it has read all of it. A refused eviction is 429, too.
        while status == TOO_MANY_REQUESTS and method == "GET" and time.monotonic() < deadline:
            time.sleep(0.1)
            status, text = self._exchange(method, path, body, headers)
        return _answer(status, text)

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of an answer that goes on, such as a watch's; they end when it does.

        Raises ApiError for error statuses, OSError where the connection breaks.
        """
        self.close()
        answer = self._answered("GET", path, None, {"Accept": JSON})
        if answer.status >= 400:
            _answer(answer.status, answer.read().decode())
        while line := answer.readline():
            yield line
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        """Once more on a fresh connection: the kept one may have died with a restart.

        Only reads are repeated; a write that got no answer may have happened.
        """
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
        self._used_at = time.monotonic()
        fresh = self._connection is None
        try:
            return self._send(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if fresh or method != "GET":
                raise ConnectionError(f"{method} {path}: {error}") from error
        return self._exchange(method, path, body, headers)

    def _send(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        answer = self._answered(method, path, body, headers)
        return answer.status, answer.read().decode()

    def _answered(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=30, context=self._context
            )
        self._connection.request(method, path, body, headers)
        return self._connection.getresponse()


def _answer(status: int, text: str) -> Any:
    answer = json.loads(text) if text.startswith("{") else text
    if status >= 400:
        problem = answer if isinstance(answer, dict) else {"message": answer}
        raise ApiError(status, problem.get("reason", ""), problem.get("message", ""))
    return answer
