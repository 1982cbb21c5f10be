"""How long it rests what the API server, or the world, does not allow now."""

from __future__ import annotations

import random

from kube.api import Backoff

RECHECK_SECONDS = 5.0
"""How soon it is decided anew at the latest about a pod for which nobody could go: at first it is
sooner, since what changes may be about it, and later not, since thousands may wait."""

_NOBODY = Backoff(first_seconds=0.5, cap_seconds=RECHECK_SECONDS)
_HELD_BACK = Backoff(first_seconds=4.0, cap_seconds=60.0)


def nobody_seconds(times: int) -> float:
    """Until it is decided anew, by how often nobody could go."""
    return _NOBODY.delay(times, random.random)


def held_back_seconds(failures: int) -> float:
    """Until somebody is asked again who may not be evicted now."""
    return _HELD_BACK.delay(failures, random.random)
