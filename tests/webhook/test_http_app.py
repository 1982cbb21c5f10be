"""The HTTP application: whatever comes in, an answer goes out."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from tests.asgi import GONE, call, status_and_body
from tests.webhook.builders import a_review_body
from webhook import http_limits, reviews
from webhook.findings import NOTHING_FOUND, Findings
from webhook.http_app import MOST_BYTES, http_app
from webhook.reviews import Answer, Review

BODY = a_review_body("Queue", {})


class Allowing:
    """Allows what is to be validated, and edits what is to be mutated."""

    def __init__(self, why: str = "") -> None:
        self.why = why

    def why_not_ready(self) -> str:
        return self.why

    async def validate(self, review: Review) -> Answer:
        return reviews.answer(review, NOTHING_FOUND)

    async def warn(self, review: Review) -> Answer:
        return reviews.answer(review, Findings(warnings=("It is odd.",)))

    async def mutate(self, review: Review) -> Answer:
        return reviews.edited(review, (reviews.Edit("spec.name", "x"),))


def an_app(why: str = "") -> FastAPI:
    return http_app(Allowing(why))


async def test_a_body_in_parts_is_put_together() -> None:
    code, answer = await status_and_body(an_app(), "POST", "/validate", [BODY[:5], b"", BODY[5:]])

    assert code == 200
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "uid-of-the-review", "allowed": True},
    }


async def test_who_mutates_is_asked_on_a_path_of_its_own() -> None:
    code, answer = await status_and_body(an_app(), "POST", "/mutate", [BODY])

    assert (code, answer["response"]["patchType"]) == (200, "JSONPatch")


async def test_who_only_warns_is_asked_on_a_path_of_its_own() -> None:
    code, answer = await status_and_body(an_app(), "POST", "/warn", [BODY])

    assert (code, answer["response"]["warnings"]) == (200, ["It is odd."])


async def test_the_longest_body_is_read() -> None:
    longest = [BODY, b" " * (MOST_BYTES - len(BODY))]

    assert (await status_and_body(an_app(), "POST", "/validate", longest))[0] == 200


async def test_a_longer_one_is_refused() -> None:
    too_long = [BODY, b" " * (MOST_BYTES - len(BODY) + 1)]

    code, status = await status_and_body(an_app(), "POST", "/validate", too_long)

    assert (code, status["kind"]) == (413, "Status")


async def test_a_client_that_stops_in_the_middle_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_limits, "BODY_SECONDS", 0.01)
    unfinished = [{"type": "http.request", "body": b"abc", "more_body": True}]

    start, _ = await call(an_app(), "POST", "/validate", unfinished)

    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]


async def test_a_client_that_went_away_is_no_error_of_ours() -> None:
    start, *_ = await call(an_app(), "POST", "/validate", [GONE])

    assert start["status"] == 400


async def test_healthy_while_it_is_not_ready() -> None:
    why = "Not read yet: queues."

    assert await status_and_body(an_app(why), "GET", "/healthz") == (200, "ok")
    code, status = await status_and_body(an_app(why), "GET", "/readyz")
    assert (code, status["message"]) == (503, why)


async def test_ready_once_its_certificate_can_be_verified() -> None:
    assert await status_and_body(an_app(), "GET", "/readyz") == (200, "ok")
    unverified = http_app(Allowing(), lambda: "There is no certificate yet.")
    assert (await status_and_body(unverified, "GET", "/readyz"))[0] == 503


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/validate", 405),
        ("PUT", "/mutate", 405),
        ("POST", "/readyz", 405),
        ("POST", "/", 404),
        ("PUT", "/x", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/docs", 404),
    ],
)
async def test_anything_else_is_not_there(method: str, path: str, code: int) -> None:
    answer: tuple[int, Any] = await status_and_body(an_app(), method, path)

    assert (answer[0], answer[1]["kind"]) == (code, "Status")
