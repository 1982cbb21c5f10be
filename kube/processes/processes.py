"""Runs a process until its work ends or a signal arrives, without waiting for threads."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NoReturn

from pythonjsonlogger.json import JsonFormatter

from kube.calls.errors import KubeconfigError
from kube.processes.opentelemetry import TracingError, flush_spans
from kube.processes.stuck_processes import end_when_stuck

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_named: ContextVar[Mapping[str, str]] = ContextVar("named", default=MappingProxyType({}))


class log_context:  # noqa: N801  It is used as a function, such as contextlib's own.
    """Adds these UIDs to each log line inside the context, and of tasks started inside.

    The names are those of Kubernetes' own logs, such as `podUID`: one search finds the lines of all
    processes. It is not a generator, which would take three times as long: each call of
    kube-scheduler runs in one.
    """

    __slots__ = ("_before", "_uids")

    def __init__(self, **uids: str) -> None:
        self._uids = uids

    def __enter__(self) -> None:
        before = _named.get()
        self._before = _named.set({**before, **self._uids} if before else self._uids)

    def __exit__(self, *_: object) -> None:
        _named.reset(self._before)


class _TextLines(logging.Formatter):
    """Lines of text, with the UIDs at the end."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        uids = "".join(f" {name}={uid}" for name, uid in _named.get().items())
        return super().formatMessage(record) + uids


class _JsonLines(JsonFormatter):
    """One JSON object a line, with a field for each UID."""

    def __init__(self) -> None:
        super().__init__(
            "%(levelname)s %(name)s %(message)s",
            timestamp="time",
            rename_fields={"levelname": "level", "name": "logger"},
        )

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        found: dict[str, Any] = {}
        super().add_fields(found, record, message_dict)
        log_data |= {"time": found.pop("time"), **found, **_named.get()}  # time first, to sort by


def log_to_stderr(level: str, *ours: str, form: str = "text") -> None:
    """Log Moorage's packages at this level, and libraries at INFO or above.

    Args:
        level: A level such as `DEBUG`.
        ours: Moorage's packages in this process, besides `kube`.
        form: `text` or `json`.
    """
    text = "%(asctime)s %(levelname)s %(name)s %(message)s"
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines(text))
    logging.basicConfig(level=max(logging.INFO, logging.getLevelName(level)), handlers=[handler])
    for package in (*ours, "kube"):
        logging.getLogger(package).setLevel(level)


def run_process(
    work: Coroutine[None, None, None],
    *,
    plain_errors: tuple[type[Exception], ...] = (),
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    stuck_seconds: float | None = None,
) -> NoReturn:
    """Run the work until it ends or a signal cancels it, and exit.

    The work itself finishes what must be finished. The exit does not wait for threads: one may
    hang in a DNS lookup, or in a file of a broken device.

    Args:
        work: Cancelled by the first SIGINT or SIGTERM.
        plain_errors: Errors whose message is enough, so that no traceback is logged;
            KubeconfigError and TracingError always are.
        loop_factory: None for asyncio's own event loop.
        stuck_seconds: The process ends if the event loop makes no iteration for so long, see
            `stuck_processes`; None for never.
    """
    if stuck_seconds is not None:
        work = _unless_stuck(work, stuck_seconds)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        status = runner.run(_until_signal(work, (KubeconfigError, TracingError, *plain_errors)))
        flush_spans()
        logging.shutdown()
        os._exit(status)


async def _unless_stuck(work: Coroutine[None, None, None], seconds: float) -> None:
    watch = asyncio.create_task(end_when_stuck(seconds))
    try:
        await work
    finally:
        watch.cancel()


async def _until_signal(
    work: Coroutine[None, None, None], plain_errors: tuple[type[Exception], ...]
) -> int:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logger.info("stopped by a signal")
        return 0
    except Exception as error:
        if plain := _plain(error, plain_errors):
            logger.error("%s", plain)  # noqa: TRY400  The message is enough.
        else:
            logger.exception("stopped by an error")
        return 1
    return 0


def _plain(error: Exception, plain_errors: tuple[type[Exception], ...]) -> Exception | None:
    """The error if its message is enough; for a group of tasks the first such error."""
    if isinstance(error, plain_errors):
        return error
    if isinstance(error, ExceptionGroup):
        found = (_plain(one, plain_errors) for one in error.exceptions)
        return next((one for one in found if one), None)
    return None
