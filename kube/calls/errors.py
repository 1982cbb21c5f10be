"""What can go wrong with a call, grouped by what the caller should do.

ApiError
  RetryableError               the same intention may succeed later
    UnavailableError           no connection, time-out, 429, 5xx: wait, then try again
    ConflictError              409: read again, decide again
    GoneError                  410: the resourceVersion is too old, list again
  PermanentError               nothing changes until somebody changes something
    NotFoundError              404
    AlreadyExistsError         409 AlreadyExists
    InvalidError               400, 422 and other refusals of the request itself
    ForbiddenError             401, 403
KubeconfigError                no call was made: nobody said where the API server is
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kube.objects import JsonObject


def said(error: Exception) -> str:
    """The sentence of an error, and its name where it has none."""
    return str(error) or type(error).__name__


class ApiError(Exception):
    """Raised when the API server refused a call or could not be reached (status 0)."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.details: JsonObject = details or {}

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}" if self.status else self.message

    @property
    def causes(self) -> Sequence[Mapping[str, Any]]:
        """What is wrong with which field, as the server's `details.causes` says it."""
        return _causes(self.details)


class KubeconfigError(Exception):
    """Raised when a kubeconfig is missing, cannot be read, or makes no sense."""


class RetryableError(ApiError):
    """Raised when the same intention may succeed later."""


class PermanentError(ApiError):
    """Raised when repeating the call cannot help."""


class UnavailableError(RetryableError):
    """Raised when the server could not answer, or asked to come back later.

    `may_have_happened`: whether a write may have been carried out although no answer came.
    `retry_after_seconds`: what the server asked for, 0 if nothing.
    """

    may_have_happened = False
    retry_after_seconds = 0.0


class ConflictError(RetryableError):
    """Raised when the object is not (any more) the one that the call was meant for."""


class GoneError(RetryableError):
    """Raised when the server no longer has the history from the given resourceVersion on."""


class NotFoundError(PermanentError):
    """Raised when the object, or the whole resource, does not exist."""


class AlreadyExistsError(PermanentError):
    """Raised when an object of that name exists."""


class InvalidError(PermanentError):
    """Raised when the server refuses the request for what it says."""


class ForbiddenError(PermanentError):
    """Raised when the caller is not known, or not allowed to do this."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    408: UnavailableError,
    409: ConflictError,
    410: GoneError,
    429: UnavailableError,
}


def error_of(status: int, body: JsonObject, retry_after: str = "") -> ApiError:
    """Return the error that a `Status` object and its HTTP code stand for."""
    reason = str(body.get("reason") or "")
    details = body.get("details")
    details = details if isinstance(details, Mapping) else {}
    error = _type_of(status, reason, details)(
        str(body.get("message") or f"HTTP {status}"),
        status=status,
        reason=reason,
        details=details,
    )
    if isinstance(error, UnavailableError):
        # A server that refuses for its load did nothing; one that failed may have done it.
        error.may_have_happened = status not in (408, 429, 503)
        error.retry_after_seconds = _seconds(retry_after) or _seconds(
            error.details.get("retryAfterSeconds")
        )
    return error


def _type_of(status: int, reason: str, details: JsonObject) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if status == 422 and any(cause.get("field") == "metadata.uid" for cause in _causes(details)):
        # How a patch fails whose metadata.uid, a precondition, is that of another object.
        return ConflictError
    if status >= 500:
        return UnavailableError
    return _BY_STATUS.get(status, InvalidError)


def _causes(details: JsonObject) -> Sequence[Mapping[str, Any]]:
    causes = details.get("causes")
    return [cause for cause in causes if isinstance(cause, Mapping)] if causes else []


def _seconds(value: object) -> float:
    try:
        return max(0.0, float(str(value)))
    except ValueError:
        return 0.0  # RFC 9110 allows a date too; Kubernetes sends seconds.
