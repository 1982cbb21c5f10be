"""How long to wait before the next attempt: exponential, capped, with full jitter."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts: after n failures in a row at most first_seconds * 2^(n - 1).

    Full jitter (uniform from zero) spreads the clients of a restarted server better than a fixed
    delay with a little noise does.

    Attributes:
        first_seconds: The longest delay after the first failure.
        cap_seconds: The longest delay of all.
        patient: Whether a key of a work queue keeps its delay although it is added meanwhile.
            client-go's queue does not keep it.
    """

    first_seconds: float = 0.5
    cap_seconds: float = 30.0
    patient: bool = False

    def delay(self, failures: int, uniform: Callable[[], float]) -> float:
        """Return the seconds to wait; `uniform` yields numbers in [0, 1)."""
        if failures <= 0:
            return 0.0
        doublings = min(failures - 1, 32)  # 2.0 ** 1024 would overflow after a long outage
        return min(self.cap_seconds, self.first_seconds * 2.0**doublings) * uniform()


def no_jitter() -> float:
    """Value for `uniform` where only one client waits: each delay is the longest one."""
    return 1.0
