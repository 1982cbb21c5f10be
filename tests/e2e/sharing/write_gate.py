"""An admission webhook of the tests that stops bindings at the API server, and then decides.

A binding that is stopped there was sent by its author, who waits for the answer: the moment at
which to kill him, or the API server.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local_cluster.api import ApiError, Cluster
from tests.e2e.sharing import objects

TIMEOUT_SECONDS = 30
PROBE = "probe-of-the-gate"


class WriteGate:
    """Stops every binding that the webhook sees, until the test allows or refuses it."""

    def __init__(self) -> None:
        self._is_decided = False
        self._allowed = True
        self._changed = threading.Condition()
        self._stopped: list[str] = []
        self._let: set[str] = set()

    def allow(self) -> None:
        """The bindings that were stopped, and those that follow."""
        self._decide(allowed=True)

    def refuse(self) -> None:
        """The same, the other way."""
        self._decide(allowed=False)

    def let(self, pod: str) -> None:
        """Allow those of one pod, and go on stopping the others."""
        with self._changed:
            self._let.add(pod)
            self._changed.notify_all()

    @property
    def stopped(self) -> list[str]:
        """Names of the pods whose bindings came here, the earliest first."""
        with self._changed:
            return [name for name in self._stopped if name != PROBE]

    @property
    def probes(self) -> int:
        """How many bindings came here that only ask whether it is in force."""
        with self._changed:
            return self._stopped.count(PROBE)

    def decide(self, review: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an AdmissionReview, as late as the test wants."""
        request = review["request"]
        name = request["name"]
        with self._changed:
            self._stopped.append(name)
            self._changed.wait_for(
                lambda: self._is_decided or name == PROBE or name in self._let, TIMEOUT_SECONDS
            )
        status = {"message": "the test refuses this binding", "code": 403}
        response = {"uid": request["uid"], "allowed": self._allowed, "status": status}
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }

    def _decide(self, *, allowed: bool) -> None:
        with self._changed:
            self._allowed, self._is_decided = allowed, True
            self._changed.notify_all()


@contextmanager
def bindings_stopped(
    cluster: Cluster, namespace: str, when: str, *also: tuple[str, str]
) -> Iterator[WriteGate]:
    """A gate for the bindings of a namespace for which the CEL expression `when` is true.

    The same for what else is named, by resource and operation. It is in force when this begins,
    and no longer when it ends: the API server learns of webhooks late, and what it asks nobody
    about, fails.
    """
    gate = WriteGate()
    with _served(cluster, gate) as url:
        name = f"gate.{namespace}.moorage.test"
        rules = [_rule(*what) for what in (("pods/binding", "CREATE"), *also)]
        webhook = {**_webhook(cluster, url, (namespace, when)), "name": name, "rules": rules}
        cluster.apply(_configuration(webhook))
        try:
            cluster.wait_until(
                "the gate is in force", lambda: _is_in_force(cluster, namespace, gate)
            )
            yield gate
        finally:
            gate.allow()
            cluster.kubectl("delete", "validatingwebhookconfiguration", name)
            cluster.wait_until(
                "the gate is gone", lambda: not _is_in_force(cluster, namespace, gate)
            )


def _is_in_force(cluster: Cluster, namespace: str, gate: WriteGate) -> bool:
    """Whether it sees a binding of a pod that does not exist."""
    path = f"/api/v1/namespaces/{namespace}/pods/{PROBE}/binding?dryRun=All"
    before = gate.probes
    with cluster.api() as api, suppress(ApiError):
        api.create(path, objects.binding(PROBE, "none"))
    return gate.probes > before


@contextmanager
def _served(cluster: Cluster, gate: WriteGate) -> Iterator[str]:
    certificate = cluster.issue_certificate("write-gate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    server = ThreadingHTTPServer((cluster.host_address, 0), _handler(gate))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://{cluster.host_address}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(gate: WriteGate) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One AdmissionReview."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(gate.decide(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Tests print nothing."""

    return Handler


def _rule(resource: str, operation: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}
    return {**rule, "operations": [operation]}


def _webhook(cluster: Cluster, url: str, what: tuple[str, str]) -> dict[str, Any]:
    namespace, when = what
    ca = cluster.issue_certificate("write-gate").ca.read_bytes()
    when = f"request.name == '{PROBE}' || ({when})"
    return {
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "matchConditions": [{"name": "is-meant", "expression": when}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }


def _configuration(webhook: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook["name"]},
        "webhooks": [webhook],
    }
