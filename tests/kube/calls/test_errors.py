"""HTTP codes and Status objects, and the errors that they become."""

from __future__ import annotations

from typing import Any

import pytest

from kube.calls.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    PermanentError,
    RetryableError,
    UnavailableError,
    error_of,
)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", InvalidError),
        (401, "Unauthorized", ForbiddenError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (415, "UnsupportedMediaType", InvalidError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", UnavailableError),
        (500, "InternalError", UnavailableError),
        (504, "Timeout", UnavailableError),
    ],
)
def test_errors_are_told_apart_by_what_to_do(
    status: int, reason: str, kind: type[ApiError]
) -> None:
    error = error_of(status, {"reason": reason, "message": "why"})

    assert type(error) is kind
    assert isinstance(error, RetryableError) != isinstance(error, PermanentError)
    assert str(error) == f"{status} {reason}: why"


def test_patch_that_names_another_uid_is_a_conflict() -> None:
    body = {"reason": "Invalid", "details": {"causes": [{"field": "metadata.uid"}]}}

    assert isinstance(error_of(422, body), ConflictError)


@pytest.mark.parametrize(("status", "happened"), [(429, False), (503, False), (500, True)])
def test_only_a_failing_server_may_have_carried_out_a_write(status: int, happened: bool) -> None:
    error = error_of(status, {})

    assert isinstance(error, UnavailableError)
    assert error.may_have_happened is happened


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("3", {}, 3.0),
        ("", {"retryAfterSeconds": 2}, 2.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", {}, 0.0),
        ("-5", {}, 0.0),
        ("", None, 0.0),
        ("", "odd", 0.0),
    ],
)
def test_time_to_come_back_is_kept(header: str, details: Any, seconds: float) -> None:
    error = error_of(429, {"details": details}, header)

    assert isinstance(error, UnavailableError)
    assert error.retry_after_seconds == seconds


def test_causes_are_those_of_the_details() -> None:
    causes = [{"field": "spec.x", "message": "required"}]

    assert error_of(422, {"details": {"causes": causes}}).causes == causes
    assert error_of(422, {}).causes == []
    assert error_of(422, {"details": {"causes": ["odd"]}}).causes == []
