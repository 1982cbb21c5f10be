"""Parses HTTP responses as bytes arrive."""

from __future__ import annotations

import httptools

from kube.calls.apiserver_reads import Answer


class AnswerParser:
    """Parses one response."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._is_whole = False

    def feed(self, data: bytes) -> Answer | None:
        """The response once it is complete, else None.

        Raises:
            ValueError: The data is not HTTP.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ValueError(f"the answer is not HTTP: {error}") from error
        if not self._is_whole:
            return None
        return Answer(self._parser.get_status_code(), self._headers, b"".join(self._parts))

    # Callbacks of httptools.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").title()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._is_whole = True
