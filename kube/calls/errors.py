"""What can go wrong with a call, grouped by what the caller should do.

ApiError
  RetryableError               the same intention may succeed later
    UnavailableError           no connection, time-out, 429, 502 to 504: the API server is away, or
                               has no time; wait, then try anything again
    ServerFaultError           500 and the like: it is there and failed at this; try this again
                               later, and others meanwhile
    UnauthorizedError          401: our credentials are not accepted; new ones may be
    ConflictError              409: read again, decide again
    GoneError                  410: the resourceVersion is too old, list again
  PermanentError               nothing changes until somebody changes something
    NotFoundError              404
    AlreadyExistsError         409 AlreadyExists
    InvalidError               400, 422 and other refusals of the request itself
    ForbiddenError             403: a right is missing, or what is asked is forbidden to everybody
KubeconfigError                no call was made: nobody said where the API server is
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kube.calls.http_dates import moment_of
from kube.objects import JsonObject

LONGEST_RETRY_AFTER_SECONDS = 60.0
"""The longest time to come back that is believed. The API server asks for seconds; whoever stands
before it and asks for an hour must not keep slots, gates and slices waiting that long."""


def said(error: Exception) -> str:
    """The sentence of an error, and its name where it has none."""
    return str(error) or type(error).__name__


class ApiError(Exception):
    """Raised when the API server refused a call or could not be reached (status 0).

    Attributes:
        cause: In a word what is wrong, for logs and figures.
        may_have_happened: Whether a write may have been carried out although it failed.
        retry_after_seconds: What the server asked for, at most a minute; 0 if nothing.
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
        """What is wrong with which field, as the server's `details.causes` says it."""
        return _causes(self.details)


class KubeconfigError(Exception):
    """Raised when a kubeconfig is missing, cannot be read, or makes no sense."""


class RetryableError(ApiError):
    """Raised when the same intention may succeed later."""


class PermanentError(ApiError):
    """Raised when repeating the call cannot help."""


class UnavailableError(RetryableError):
    """Raised when the server could not be reached, or asked to come back later."""

    cause = "unavailable"


class ServerFaultError(RetryableError):
    """Raised when the server is there and failed at this call, as where a webhook of it does."""

    cause = "server-fault"


class UnauthorizedError(RetryableError):
    """Raised when the server does not accept who we say we are: a token may have run out."""

    cause = "credentials"

    def __str__(self) -> str:
        return f"{super().__str__()} (the API server does not accept our credentials)"


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
    """Raised when the caller may not do this, or nobody may."""

    @property
    def missing_right(self) -> str:
        """Verb and resource that the caller has no right to; "" where it is forbidden otherwise.

        An authorizer says it in words alone; an admission plugin says others, such as that the
        namespace is about to go.
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
"""As the API server words it: User "a" cannot list resource "pods" in API group "" at …"""

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
    """Return the error that a `Status` object and its HTTP code stand for.

    Args:
        status: The HTTP code.
        body: The `Status`; what is not one says nothing.
        retry_after: The header, "" for none.
        sent: The header `Date`, from which a `Retry-After` that is a date is counted.
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
        # A server that refuses for its load did nothing; one that failed may have done it.
        error.may_have_happened = status not in (408, 429, 503)
        asked = _seconds(retry_after) or _seconds_between(sent, retry_after)
        asked = asked or _seconds(error.details.get("retryAfterSeconds"))
        error.retry_after_seconds = min(asked, LONGEST_RETRY_AFTER_SECONDS)
    return error


def _type_of(status: int, reason: str, details: JsonObject) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if status == 422 and any(cause.get("field") == "metadata.uid" for cause in _causes(details)):
        # How a patch fails whose metadata.uid, a precondition, is that of another object.
        return ConflictError
    return _BY_STATUS.get(status, ServerFaultError if status >= 500 else InvalidError)


def _causes(details: JsonObject) -> Sequence[Mapping[str, Any]]:
    causes = details.get("causes")
    return [cause for cause in causes if isinstance(cause, Mapping)] if causes else []


def _seconds(value: object) -> float:
    """A number of seconds; 0 for what is negative, not a number, or no number at all."""
    try:
        seconds = float(str(value))
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0


def _seconds_between(sent: str, until: str) -> float:
    """The seconds between two dates of RFC 9110; 0 where one of them is none.

    Kubernetes sends seconds, but a proxy before it may send a date.
    """
    try:
        found = moment_of(until) - moment_of(sent)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(0.0, found.total_seconds())
