"""The fence before each write: whoever may lose the Lease before a write ends does not begin it."""

from __future__ import annotations

from scheduler_plugin.api import Fence


class FencedError(Exception):
    """Raised where a write may not begin, since the Lease may be lost before it ends."""


def check(fence: Fence, seconds: float) -> None:
    """Raise FencedError where a write that takes so long may not begin now."""
    if why := fence.why_not(seconds):
        raise FencedError(why)
