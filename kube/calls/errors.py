"""Errors of calls, grouped by what the caller should do.

ApiError
  RetryableError               the same call may succeed later
    UnavailableError           no connection, time-out, 408, 429, 502 to 504: the API server is
                               unreachable or overloaded; wait before any other call
    ServerFaultError           500 and the like: the server failed at this call; retry it later,
                               other calls may succeed meanwhile
    UnauthorizedError          401: the credentials are not accepted; newer ones may be
    ConflictError              409: read the object and decide again
    GoneError                  410: the resourceVersion is too old, list again
  PermanentError               a retry fails until the object, the rights or the request change
    NotFoundError              404
    AlreadyExistsError         409 AlreadyExists
    InvalidError               400, 422 and other refusals of the request itself
    ForbiddenError             403: a right is missing, or the request is forbidden to all users
KubeconfigError                no call was made: the address of the API server is unknown
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kube.calls.http_dates import moment_of
from kube.objects import JsonObject

LONGEST_RETRY_AFTER_SECONDS = 60.0
"""The longest `Retry-After` that is honoured. The API server asks for seconds. A proxy before it
may ask for an hour, and must not delay slots, gates and slices that long."""


def said(error: Exception) -> str:
    """The message of an error, or its type if the message is empty."""
    return str(error) or type(error).__name__


class ApiError(Exception):
    """Raised when the API server refused a call or could not be reached (status 0).

    Attributes:
        cause: One word for logs and metrics.
        may_have_happened: Whether a write may have been carried out although it failed.
        retry_after_seconds: The server's `Retry-After`, at most a minute; 0 for none.
    """

    cause = "refused"
    may_have_happened = False
    retry_after_seconds = 0.0

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
        """Field errors, as in the server's `details.causes`."""
        return _causes(self.details)


class KubeconfigError(Exception):
    """Raised when a kubeconfig is missing, unreadable or invalid."""


class RetryableError(ApiError):
    """Raised when the same call may succeed later."""


class PermanentError(ApiError):
    """Raised when a retry cannot succeed."""


class UnavailableError(RetryableError):
    """Raised when the server could not be reached, or asked for a later retry.

    Attributes:
        answered_others: Whether the client got other answers since this call began: then the call
            fails, for example at a slow webhook, and not the server.
    """

    cause = "unavailable"
    answered_others = False


class ServerFaultError(RetryableError):
    """Raised when the server answered, but failed at this call, for example at a webhook."""

    cause = "server-fault"


class UnauthorizedError(RetryableError):
    """Raised when the server does not accept the credentials: a token may have expired."""

    cause = "credentials"

    def __str__(self) -> str:
        return f"{super().__str__()} (the API server does not accept our credentials)"


class ConflictError(RetryableError):
    """Raised when the object has changed, or was replaced, since it was read."""


class GoneError(RetryableError):
    """Raised when the server no longer has the history from the given resourceVersion on."""


class NotFoundError(PermanentError):
    """Raised when the object, or the whole resource, does not exist."""


class AlreadyExistsError(PermanentError):
    """Raised when an object of that name exists."""


class InvalidError(PermanentError):
    """Raised when the server refuses the content of the request."""


class ForbiddenError(PermanentError):
    """Raised when the caller lacks a right, or the request is forbidden to all users."""

    @property
    def missing_right(self) -> str:
        """Verb and resource of the missing right; "" if the request is forbidden otherwise.

        An authorizer says this in the message only. An admission plugin forbids for other reasons,
        such as a terminating namespace.
        """
        found = re.search(_NO_RIGHT, self.message)
        if found is None:
            return ""
        verb, resource, group = found.groups()
        return f'"{verb}" on "{resource}.{group}"' if group else f'"{verb}" on "{resource}"'

    @property
    def cause(self) -> str:  # type: ignore[override]
        return "missing-right" if self.missing_right else "refused"

    def __str__(self) -> str:
        right = self.missing_right
        return (
            f"the right to {right} is missing: {super().__str__()}" if right else super().__str__()
        )


_NO_RIGHT = (
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)"(?: in API group "(?P<group>[^"]*)")?'
)
"""The API server's text: User "a" cannot list resource "pods" in API group "" at …"""

_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    408: UnavailableError,
    409: ConflictError,
    410: GoneError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def error_of(status: int, body: JsonObject, retry_after: str = "", sent: str = "") -> ApiError:
    """Return the error of a `Status` object and its HTTP code.

    Args:
        status: The HTTP code.
        body: The `Status`; other objects are ignored.
        retry_after: The header `Retry-After`, "" for none.
        sent: The header `Date`; a `Retry-After` that is a date counts from it.
    """
    reason = str(body.get("reason") or "")
    details = body.get("details")
    details = details if isinstance(details, Mapping) else {}
    error = _type_of(status, reason, details)(
        str(body.get("message") or f"HTTP {status}"),
        status=status,
        reason=reason,
        details=details,
    )
    if isinstance(error, UnavailableError | ServerFaultError):
        # A server that refuses because of its load wrote nothing; a failed one may have.
        error.may_have_happened = status not in (408, 429, 503)
        asked = _seconds(retry_after) or _seconds_between(sent, retry_after)
        asked = asked or _seconds(error.details.get("retryAfterSeconds"))
        error.retry_after_seconds = min(asked, LONGEST_RETRY_AFTER_SECONDS)
    return error


def _type_of(status: int, reason: str, details: JsonObject) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if status == 422 and any(cause.get("field") == "metadata.uid" for cause in _causes(details)):
        # A patch fails so if metadata.uid, a precondition, is the UID of another object.
        return ConflictError
    return _BY_STATUS.get(status, ServerFaultError if status >= 500 else InvalidError)


def _causes(details: JsonObject) -> Sequence[Mapping[str, Any]]:
    causes = details.get("causes")
    return [cause for cause in causes if isinstance(cause, Mapping)] if causes else []


def _seconds(value: object) -> float:
    """A number of seconds; 0 for negative numbers, NaN and other text."""
    try:
        seconds = float(str(value))
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0


def _seconds_between(sent: str, until: str) -> float:
    """The seconds between two dates of RFC 9110; 0 if one of them is not a date.

    Kubernetes sends seconds, but a proxy before it may send a date.
    """
    try:
        found = moment_of(until) - moment_of(sent)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(0.0, found.total_seconds())
