"""HTTP requests of the verbs that read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from kube.resources import Selection

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request; `timeout_seconds` includes the response."""

    method: str
    url_path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    timeout_seconds: float

    @property
    def what(self) -> str:
        return f"{self.method} {self.url_path}"

    @property
    def url(self) -> str:
        """Path and query."""
        return f"{self.url_path}?{urlencode(self.query)}" if self.query else self.url_path


def read(url_path: str, timeout_seconds: float) -> Request:
    return Request(method="GET", url_path=url_path, timeout_seconds=timeout_seconds)


def list_page(selection: Selection, limit: int, token: str, timeout_seconds: float) -> Request:
    """Request a page, without a resourceVersion: the most recent state.

    With one, a server that lags behind could answer with an older state than this process has
    already read.
    """
    query = {**selection.parameters, "limit": str(limit)}
    if token:
        query["continue"] = token
    return Request(
        method="GET",
        url_path=selection.url_path,
        query=query,
        timeout_seconds=timeout_seconds,
    )
