"""Results of reconciling a key once, as controller-runtime's `Result`."""

from __future__ import annotations

from dataclasses import dataclass

from kube.calls.errors import ApiError, UnauthorizedError, UnavailableError


@dataclass(frozen=True, slots=True)
class Done:
    """The key is reconciled; it is reconciled again when it is added.

    Attributes:
        pause: Seconds until the worker takes another key: limits the rate of work that is not
            urgent.
    """

    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class After:
    """The key is reconciled again after this time, or sooner when it is added.

    Attributes:
        seconds: The time.
        pause: As in `Done`.
    """

    seconds: float
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """The key failed; it is retried with back-off.

    Attributes:
        error: The reason.
        pauses_all: Whether the error is not about the key, for example because the API server is
            unreachable. Then no key is reconciled for a time that grows with failures in a row.
    """

    error: Exception
    pauses_all: bool = False


Result = Done | After | Failed


def failed_call(error: ApiError) -> Failed:
    """The result of a failed call; pauses all keys if no call can succeed at the moment.

    A call may be lost by itself, for example at a slow webhook, while the server answers others.
    """
    is_away = isinstance(error, UnavailableError) and not error.answered_others
    return Failed(error, pauses_all=is_away or isinstance(error, UnauthorizedError))
