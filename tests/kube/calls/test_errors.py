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
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
    error_of,
)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", InvalidError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (410, "Expired", GoneError),
        (415, "UnsupportedMediaType", InvalidError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", UnavailableError),
        (500, "InternalError", ServerFaultError),
        (501, "NotImplemented", ServerFaultError),
        (502, "BadGateway", UnavailableError),
        (503, "ServiceUnavailable", UnavailableError),
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


NO_RIGHT = (
    'queues.moorage.dev is forbidden: User "system:serviceaccount:a:b" cannot list resource'
    ' "queues" in API group "moorage.dev" at the cluster scope'
)


@pytest.mark.parametrize(
    ("message", "right"),
    [
        (NO_RIGHT, '"list" on "queues.moorage.dev"'),
        (
            'pods "a" is forbidden: User "u" cannot create resource "pods/eviction" in API group ""'
            ' in the namespace "n"',
            '"create" on "pods/eviction"',
        ),
        (
            'pods "a" is forbidden: unable to create new content in namespace n because it is being'
            " terminated",
            "",
        ),
        ("Forbidden", ""),
    ],
)
def test_a_missing_right_is_told_by_verb_and_resource(message: str, right: str) -> None:
    error = error_of(403, {"reason": "Forbidden", "message": message})

    assert isinstance(error, ForbiddenError)
    assert error.missing_right == right
    if right:
        assert error.cause == "missing-right"
        assert str(error) == f"the right to {right} is missing: 403 Forbidden: {message}"
    else:
        assert error.cause == "refused"
        assert str(error) == f"403 Forbidden: {message}"


def test_credentials_that_are_not_accepted_are_no_missing_right() -> None:
    """A token that ran out is replaced: what was not done is done then."""
    error = error_of(401, {"reason": "Unauthorized", "message": "Unauthorized"})

    assert type(error) is UnauthorizedError
    assert isinstance(error, RetryableError)
    assert error.cause == "credentials"
    assert "does not accept our credentials" in str(error)


@pytest.mark.parametrize(
    ("status", "cause"),
    [(429, "unavailable"), (503, "unavailable"), (500, "server-fault"), (422, "refused")],
)
def test_what_is_wrong_is_told_in_a_word(status: int, cause: str) -> None:
    assert error_of(status, {}).cause == cause


def test_patch_that_names_another_uid_is_a_conflict() -> None:
    body = {"reason": "Invalid", "details": {"causes": [{"field": "metadata.uid"}]}}

    assert isinstance(error_of(422, body), ConflictError)


@pytest.mark.parametrize(("status", "happened"), [(429, False), (503, False), (500, True)])
def test_only_a_failing_server_may_have_carried_out_a_write(status: int, happened: bool) -> None:
    assert error_of(status, {}).may_have_happened is happened


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("3", {}, 3.0),
        ("", {"retryAfterSeconds": 2}, 2.0),
        ("-5", {}, 0.0),
        ("nan", {}, 0.0),
        ("nan", {"retryAfterSeconds": 2}, 2.0),
        ("-inf", {}, 0.0),
        ("soon", {}, 0.0),
        ("", None, 0.0),
        ("", "odd", 0.0),
    ],
)
def test_time_to_come_back_is_kept(header: str, details: Any, seconds: float) -> None:
    error = error_of(429, {"details": details}, header)

    assert isinstance(error, UnavailableError)
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("header", "details"),
    [("3600", {}), ("inf", {}), ("1e400", {}), ("", {"retryAfterSeconds": 86_400})],
)
def test_no_server_is_waited_for_longer_than_a_minute(header: str, details: Any) -> None:
    error = error_of(429, {"details": details}, header)

    assert isinstance(error, UnavailableError)
    assert error.retry_after_seconds == 60


@pytest.mark.parametrize(
    ("header", "sent", "seconds"),
    [
        ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:29 GMT", 30.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 22:00:00 GMT", 60.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "Sat, 01 Jan 2000 00:00:09 GMT", 0.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "", 0.0),
        ("Fri, 31 Dec 1999 23:59:59", "Fri, 31 Dec 1999 23:59:29 GMT", 0.0),
        ("Fri, 99 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:29 GMT", 0.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", "today", 0.0),
    ],
)
def test_a_date_to_come_back_is_counted_from_when_the_answer_was_sent(
    header: str, sent: str, seconds: float
) -> None:
    error = error_of(503, {}, header, sent)

    assert isinstance(error, UnavailableError)
    assert error.retry_after_seconds == seconds


def test_causes_are_those_of_the_details() -> None:
    causes = [{"field": "spec.x", "message": "required"}]

    assert error_of(422, {"details": {"causes": causes}}).causes == causes
    assert error_of(422, {}).causes == []
    assert error_of(422, {"details": {"causes": ["odd"]}}).causes == []
