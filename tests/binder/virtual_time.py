"""An event loop whose clock jumps to whatever is due next: an hour of waiting takes no time.

It is for tests without sockets or processes: where nothing is ready, nothing can come from outside.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class _JumpingSelector(selectors.SelectSelector):
    """Waits for nothing: the time that it would wait passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout:
            self.moment += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time` is that of the selector, from 0 on."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.moment


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an asynchronous test on such a loop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
