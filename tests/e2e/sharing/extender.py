"""The tests' hand on the calls between kube-scheduler and the plugin: see `extender_proxy`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SECONDS = 60.0


@dataclass(frozen=True)
class Extender:
    """Where kube-scheduler asks.

    Attributes:
        host: Address of the proxy.
        port: Its port.
    """

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @contextmanager
    def holding(self, verb: str, pod: str) -> Iterator[None]:
        """Hold back the calls about a pod (`namespace/name`) for as long as this lasts."""
        self.hold(verb, pod)
        try:
            yield
        finally:
            self.let_go(verb, pod)

    def hold(self, verb: str, pod: str) -> None:
        self._request("PUT", f"/holds/{verb}/{pod}")

    def let_go(self, verb: str, pod: str) -> None:
        self._request("DELETE", f"/holds/{verb}/{pod}")

    def is_held(self, verb: str, pod: str) -> bool:
        return any(call["state"] == "held" for call in self.calls(verb, pod))

    def answers(self, verb: str, pod: str) -> list[Any]:
        """What the plugin answered about a pod, the earliest first."""
        calls = self.calls(verb, pod)
        return [json.loads(call["answer"]) for call in calls if call["state"] == "answered"]

    def calls(self, verb: str, pod: str) -> list[dict[str, str]]:
        calls: list[dict[str, str]] = json.loads(self._request("GET", "/calls"))
        return [call for call in calls if call["call"] == f"{verb}/{pod}"]

    def ask(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Ask the plugin as kube-scheduler does, past everything that is held."""
        return json.loads(self._request("POST", f"/directly/{verb}", json.dumps(arguments)))

    def is_up(self) -> bool:
        try:
            self._request("GET", "/calls")
        except OSError:
            return False
        return True

    def _request(self, method: str, path: str, body: str | None = None) -> str:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == 200, f"{method} {path}: {answer.status} {text}"
        return text
