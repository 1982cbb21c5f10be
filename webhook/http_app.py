"""The webhook as HTTP requests: a FastAPI application.

POST /validate    an AdmissionReview: allows or denies the object
POST /warn        an AdmissionReview: allows the object, with warnings
POST /mutate      an AdmissionReview: allows the object, with a patch
GET  /healthz     the process answers
GET  /readyz      its stores are filled, and its certificate can be verified
GET  /metrics     metrics for Prometheus

Every request gets an answer within seconds. With any status but 200 the registered `failurePolicy`
decides; the body is a `Status`, and users see its message.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware import Middleware
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from kube.calls.api import ApiError
from kube.processes.api import log_context
from webhook import reviews
from webhook.http_limits import ClientLimits
from webhook.lookups import BusyError
from webhook.prometheus import CONTENT_TYPE_LATEST, Answered, page
from webhook.reviews import AdmissionReview, Answer, Review

logger = logging.getLogger(__name__)

MOST_BYTES = 4 * 2**20
"""The API server takes objects of at most 3 MiB."""


class AnswersReviews(Protocol):
    """Answers reviews of the API server; see `apiserver.Admission`."""

    def why_not_ready(self) -> str: ...
    async def validate(self, review: Review) -> Answer: ...
    async def mutate(self, review: Review) -> Answer: ...
    async def warn(self, review: Review) -> Answer: ...


def http_app(admission: AnswersReviews, why_no_certificate: Callable[[], str] = str) -> FastAPI:
    """The application; `why_no_certificate` returns "" once callers can verify the certificate."""
    app = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        max_body_size=MOST_BYTES,
        middleware=[Middleware(ClientLimits)],
        exception_handlers={
            StarletteHTTPException: _http_error,
            RequestValidationError: _malformed,
            BusyError: _busy,
            ApiError: _not_looked_up,
            TimeoutError: _not_looked_up,
            Exception: _broken,
        },
    )

    async def started() -> None:
        if why := admission.why_not_ready():
            raise HTTPException(503, f"The webhook of Moorage is starting. {why}")

    # `warn` is a path of its own: an older replica answers 404, which the registration ignores.
    # Under `validate` an older replica would refuse kinds that it has no rule for.
    answers = {"validate": admission.validate, "warn": admission.warn, "mutate": admission.mutate}
    for path, answer in answers.items():
        app.add_api_route(
            f"/{path}",
            _answering(path, answer),
            methods=["POST"],
            dependencies=[Depends(started)],
            response_model_exclude_none=True,
        )

    @app.get("/healthz")
    async def healthz() -> str:
        return "ok"

    @app.get("/readyz")
    async def readyz() -> str:
        if why := why_no_certificate() or admission.why_not_ready():
            raise HTTPException(503, why)
        return "ok"

    app.add_api_route("/metrics", _figures, response_class=PlainTextResponse)
    return app


def _answering(
    path: str, answer: Callable[[Review], Awaitable[Answer]]
) -> Callable[[AdmissionReview], Awaitable[Answer]]:
    async def route(review: AdmissionReview) -> Answer:
        return await _answered(path, review.request, answer)

    return route


async def _answered(
    path: str, review: Review, answer: Callable[[Review], Awaitable[Answer]]
) -> Answer:
    with log_context(**_uids(review)), Answered(path, review) as answered:
        found = answered.by(await answer(review))
        said = "allowed" if found.response.allowed else "refused"
        logger.debug("%s %s %s: %s", path, review.operation, review.kind.kind, said)
        return found


def _uids(review: Review) -> dict[str, str]:
    """The object's UID, by its kind; a new object has one only when it is validated."""
    metadata = (review.new or review.old or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return {_UIDS[review.kind.kind]: str(uid)} if uid and review.kind.kind in _UIDS else {}


_UIDS = {"Pod": "podUID", "ResourceClaim": "claimUID"}


async def _figures() -> Response:
    return Response(page(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _failed(code: int, sentence: str) -> JSONResponse:
    return JSONResponse(reviews.failure(code, sentence), code)


async def _http_error(_request: Request, error: StarletteHTTPException) -> JSONResponse:
    answer = _failed(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def _malformed(_request: Request, error: RequestValidationError) -> JSONResponse:
    found = error.errors()[0]
    field = ".".join(map(str, found["loc"][1:])) or "body"
    sentence = (
        f"The body is not an AdmissionReview of admission.k8s.io/v1: {field}: {found['msg']}."
    )
    return _failed(400, sentence)


async def _busy(_request: Request, error: BusyError) -> JSONResponse:
    logger.warning("review not answered: %s", error)
    return _failed(429, f"{error} Try again.")


async def _not_looked_up(_request: Request, error: ApiError | TimeoutError) -> JSONResponse:
    logger.warning("review not answered: a look-up failed: %s", str(error) or "time-out")
    sentence = "The webhook of Moorage cannot read the objects that this one refers to; try again."
    return _failed(503, f"{sentence} {error}".rstrip())


async def _broken(_request: Request, _error: Exception) -> JSONResponse:
    """Answer 500; uvicorn logs the error."""
    return _failed(500, "The webhook of Moorage failed; its log says why.")
