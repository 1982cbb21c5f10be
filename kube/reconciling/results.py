"""What came of working on a key once: what controller-runtime calls a Result."""

from __future__ import annotations

from dataclasses import dataclass

from kube.calls.errors import ApiError, UnauthorizedError, UnavailableError


@dataclass(frozen=True, slots=True)
class Done:
    """It is as it should be; looked at again when something changes.

    Attributes:
        pause: Seconds until its worker takes another key. Work that is not urgent has a pace.
    """

    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class After:
    """It is looked at again after this time, or sooner when something changes.

    Attributes:
        pause: As in `Done`.
    """

    seconds: float
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be brought about: tried again, later and later.

    Attributes:
        pauses_all: Whether the error is not about the key, as where the API server is away. Then
            no key is worked on until this one is tried again.
    """

    error: Exception
    pauses_all: bool = False


Result = Done | After | Failed


def failed_call(error: ApiError) -> Failed:
    """The key failed; where the server is away or does not know this client, all of them."""
    return Failed(error, pauses_all=isinstance(error, UnavailableError | UnauthorizedError))
