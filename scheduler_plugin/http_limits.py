"""What one request to the plugin may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may take.

    Attributes:
        body: Bytes of a body that is read. The largest pod that etcd takes is 1.5 MiB, and 5,000
            names of the 253 characters that a name may have are 1.3 MiB.
        discarded: Bytes of a longer body that are read and dropped: a client that has sent all of
            it reads the answer, one that is cut off sees a broken connection.
        receive_seconds: For a body to arrive.
        bind_seconds: For a Bind; well inside the `httpTimeout` of 10 s, after which kube-scheduler
            would not hear why.
        stop_seconds: For requests under way when the server stops; more than one Bind takes, with
            the look that follows one that failed.
        binds: Calls of Bind that are under way; beyond that Filter is answered later.
    """

    body: int = 4 << 20
    discarded: int = 32 << 20
    receive_seconds: float = 5.0
    bind_seconds: float = 6.0
    stop_seconds: int = 9
    binds: int = 32


DEFAULT_LIMITS = Limits()
