"""Runs the child that evaluates CEL; expressions that exceeded its limits are not retried."""

from __future__ import annotations

import asyncio
import json
import logging
import marshal
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NoReturn

from cachetools import LRUCache

from kube.cel.messages import FALSE, READY, SIZE_BYTES, TRUE

logger = logging.getLogger(__name__)

BATCH_SIZE = 100
"""Values in one message: serializing a message blocks the event loop."""

WAIT_SECONDS = 30.0
"""The longest wait for an answer: a machine may be so busy that the child gets no CPU."""

REMEMBERED = 10_000
"""How many sets of expressions that are too slow are remembered."""

_OUR_OWN = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes for which the expressions are not to blame. Codes of 0 and above are faults of the
child's own code."""


class TooSlowError(Exception):
    """Raised if expressions exceed the limits: they count as not evaluated."""


class NotEvaluatedError(Exception):
    """Raised if expressions were not evaluated; a retry may succeed."""


def digest_of(expressions: Sequence[str]) -> str:
    """The key under which expressions are remembered: 32 hexadecimal digits."""
    return sha256(json.dumps(expressions).encode()).hexdigest()[:32]


class CelProcess:
    """Evaluates expressions of users. The child is started at the first request, or before it."""

    def __init__(self) -> None:
        self._child: Process | None = None
        self._lock = asyncio.Lock()
        self._too_slow: LRUCache[str, None] = LRUCache(REMEMBERED)
        self.started = 0
        """How many children were started."""

    async def matches(
        self, expressions: Sequence[str], devices: Sequence[Mapping[str, Any]]
    ) -> list[bool | None]:
        """For each device: whether all expressions are true; None if one cannot be evaluated.

        The first expression that is not true decides.

        Raises:
            TooSlowError: The expressions exceed the limits, now or in an earlier call.
            NotEvaluatedError: The child could not be started, or did not answer.
        """
        digest = digest_of(expressions)
        async with self._lock:
            if digest in self._too_slow:
                raise TooSlowError(digest)
            try:
                return await self._answers(expressions, devices)
            except _EndedError as error:
                if error.code == -signal.SIGPROF:
                    self._judge(digest, error.code)
            # Memory of earlier requests may have ended the child: retry with a new one.
            try:
                return await self._answers(expressions, devices)
            except _EndedError as error:
                self._judge(digest, error.code)

    async def start(self) -> None:
        """Start the child before the first request, which then does not wait for the library.

        Raises:
            NotEvaluatedError: The child could not be started.
        """
        await self.matches((), ())

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    def _judge(self, digest: str, code: int) -> NoReturn:
        if code >= 0 or code in _OUR_OWN:
            raise NotEvaluatedError(f"the process that evaluates CEL ended with code {code}")
        self._too_slow[digest] = None
        logger.warning("CEL takes too long and is not evaluated digest=%s code=%d", digest, code)
        raise TooSlowError(digest)

    async def _answers(
        self, expressions: Sequence[str], devices: Sequence[Mapping[str, Any]]
    ) -> list[bool | None]:
        """Raises _EndedError or NotEvaluatedError; after either the child has ended."""
        found = bytearray()
        try:
            async with asyncio.timeout(WAIT_SECONDS) as waiting:
                child = await self._running()
                for is_first, values in _batches(devices):
                    found += await _asked(child, is_first, list(expressions), values)
                    waiting.reschedule(asyncio.get_running_loop().time() + WAIT_SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError):
            ended, self._child = self._child, None
            assert ended is not None, "it was asked"
            raise _EndedError(await ended.wait()) from None
        except TimeoutError:
            await self.close()
            why = f"the process that evaluates CEL did not answer within {WAIT_SECONDS:.0f} s"
            raise NotEvaluatedError(why) from None
        except OSError as error:
            why = f"the process that evaluates CEL cannot be started: {error}"
            raise NotEvaluatedError(why) from None
        except BaseException:
            await self.close()
            raise
        return [_ANSWERS.get(each) for each in found]

    async def _running(self) -> Process:
        if self._child is None:
            command = (sys.executable, "-I", "-m", "kube.cel.child_main")
            self._child = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}
            )
            self.started += 1
            assert self._child.stdout is not None, "it is a pipe"
            if await self._child.stdout.read(len(READY)) != READY:
                raise NotEvaluatedError("the process that evaluates CEL does not start")
        return self._child


class _EndedError(Exception):
    """Raised when the child ended, with its exit code, which is below 0 for a signal."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


_ANSWERS = {TRUE: True, FALSE: False}


def _batches(
    devices: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[bool, Sequence[Mapping[str, Any]]]]:
    for begin in range(0, len(devices), BATCH_SIZE):
        yield begin == 0, list(devices[begin : begin + BATCH_SIZE])


async def _asked(child: Process, is_first: bool, expressions: list[str], values: Any) -> bytes:
    assert child.stdin is not None, "both are pipes"
    assert child.stdout is not None, "both are pipes"
    if child.stdin.is_closing():
        raise ConnectionResetError("the child ended")  # uvloop does not raise it by itself.
    text = marshal.dumps((is_first, expressions, values))
    child.stdin.write(len(text).to_bytes(SIZE_BYTES, "big") + text)
    await child.stdin.drain()
    return await child.stdout.readexactly(len(values))
