"""What a read of the API looks like as an HTTP request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from kube.resources import Selection

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request; `timeout_seconds` is for the whole of it, the answer included."""

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
    """Ask for a page. Without a resourceVersion: the most recent state, never an older one.

    A server that lags behind (one of several, just started) could otherwise answer with less
    than this process has already seen.
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
