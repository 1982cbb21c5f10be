"""Whatever is sent to the process over TLS, it answers, and goes on to answer others."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator

import pytest

from tests.e2e.webhook.installation import WebhookProcess
from tests.webhook.builders import a_review_body

SECONDS = 20


@pytest.fixture
def connection(webhook: WebhookProcess) -> Iterator[http.client.HTTPSConnection]:
    opened = connect(webhook)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def still_answers(webhook: WebhookProcess) -> Iterator[None]:
    """Afterwards a good review gets its answer, from a process that was not replaced."""
    before = webhook.pid
    yield
    fresh = connect(webhook)
    code, answer = post(fresh, a_review_body("Queue", queue()))
    fresh.close()
    assert code == 200
    assert json.loads(answer)["response"] == {"uid": "uid-of-the-review", "allowed": True}
    assert webhook.pid == before


def connect(webhook: WebhookProcess) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=webhook.certificate.ca)
    return http.client.HTTPSConnection(webhook.host, webhook.port, timeout=SECONDS, context=context)


def post(opened: http.client.HTTPSConnection, body: bytes) -> tuple[int, bytes]:
    opened.request("POST", "/validate?timeout=5s", body, {"Content-Type": "application/json"})
    answer = opened.getresponse()
    return answer.status, answer.read()


def queue() -> dict[str, object]:
    return {"metadata": {"name": "good"}, "spec": {}}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\x00" * 1000, b"[" * 1_000_000, b"null", b'{"kind": "AdmissionReview"}'],
    ids=["empty", "cut", "zeros", "nested", "null", "no request"],
)
def test_what_is_no_review_is_a_bad_request(
    body: bytes, connection: http.client.HTTPSConnection
) -> None:
    code, answer = post(connection, body)

    assert code == 400
    assert json.loads(answer)["kind"] == "Status"


def test_a_kind_without_rules_is_refused_with_a_sentence(
    connection: http.client.HTTPSConnection,
) -> None:
    code, answer = post(connection, a_review_body("Deployment", {"metadata": {"name": "d"}}))

    response = json.loads(answer)["response"]
    assert (code, response["allowed"]) == (200, False)
    assert response["status"]["message"].startswith("No rule is about CREATE of Deployment.apps.")


def test_five_megabytes_are_too_much_and_the_connection_is_still_good(
    connection: http.client.HTTPSConnection,
) -> None:
    code, _ = post(connection, b'{"padding": "' + b"x" * 5_000_000 + b'"}')
    after, _ = post(connection, a_review_body("Queue", queue()))

    assert code == 413
    assert after == 200


def test_three_megabytes_are_read(connection: http.client.HTTPSConnection) -> None:
    large = {"metadata": {"name": "large", "annotations": {"a": "x" * 3_000_000}}, "spec": {}}

    assert post(connection, a_review_body("Queue", large))[0] == 200


def test_a_body_that_never_ends_is_given_up(connection: http.client.HTTPSConnection) -> None:
    connection.putrequest("POST", "/validate")
    connection.putheader("Content-Length", "1000")
    connection.endheaders(b"{")

    assert connection.getresponse().status == 408


def test_plain_http_is_not_spoken(webhook: WebhookProcess) -> None:
    plain = http.client.HTTPConnection(webhook.host, webhook.port, timeout=SECONDS)
    with pytest.raises((http.client.HTTPException, OSError)):
        post_plain(plain)
    plain.close()


def post_plain(opened: http.client.HTTPConnection) -> int:
    opened.request("GET", "/readyz")
    return opened.getresponse().status
