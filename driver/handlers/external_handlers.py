"""The external discovery handlers of a node: they register, and go offline.

    registrations ──► handler table ──► a source for each handler ──► discoveries
    conversations ──reached, lost──┘

The table is stored on disk. So the next run of the driver calls the same handlers at once, and does
not treat their devices as absent. `node_conversations` calls the handlers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NoReturn

from driver.api import ConfigurationName
from driver.handlers.handler_answers import Answers
from driver.handlers.handler_conversations import (
    AskSlots,
    Terms,
)
from driver.handlers.handler_sources import Answer, Question, pause_until
from driver.handlers.node_conversations import Conversations
from driver.handlers.registrations import Endpoint, Registration
from driver.handlers.remembered import dump, load, load_removed
from driver.handlers.report_limits import (
    DEFAULT_LIMITS,
    HandlerLimits,
    refused_in_folder,
    refused_name,
)
from driver.handlers.sdk_requests import TlsFiles
from driver.handlers.status_entries import Report
from driver.handlers.table import HandlerTable, TableFullError
from driver.plumbing.disk import Folder
from driver.plumbing.disk_dev import HostDev
from driver.plumbing.prometheus import HANDLERS_REFUSED

logger = logging.getLogger(__name__)

FILE = "handlers.json"

CONCURRENT_ASKS = 2
"""Handlers that are asked concurrently; an answer may have 8 MiB."""

CONCURRENT_ASKS_UNPRIVILEGED = 8
"""Handlers without privileges that are asked concurrently; their answers are smaller."""


class NotAllowedError(Exception):
    """Raised when a handler may not register; the text is a sentence."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ExternalSource:
    """One registered handler."""

    registration: Registration
    is_awaited: bool
    _handlers: ExternalHandlers = field(repr=False)

    @property
    def key(self) -> str:
        return self.registration.endpoint.address

    def answers(self, name: ConfigurationName, question: Question) -> AsyncGenerator[Answer, None]:
        return self._handlers.conversations.converse(self.registration, name, question)

    async def pause(self, seconds: float) -> None:
        await self._handlers.pause(self.registration.endpoint, seconds)


class ExternalHandlers:
    """The registered handlers of a node.

    Attributes:
        table: The handlers and their states.
        conversations: The conversations with them.

    Args:
        folder: The folder of the file with the table.
        now: The clock.
        limits: The limits of handlers and their answers.
        tls: Files for mutual TLS with handlers on the network; None for no TLS.
        dev: The host's device nodes.
    """

    def __init__(
        self,
        folder: Folder,
        now: Callable[[], datetime] = _now,
        limits: HandlerLimits = DEFAULT_LIMITS,
        tls: TlsFiles | None = None,
        dev: HostDev | None = None,
    ) -> None:
        self._folder = folder
        self._now = now
        self._limits = limits
        self._tls = tls
        self._slots = {
            True: AskSlots(CONCURRENT_ASKS_UNPRIVILEGED),
            False: AskSlots(CONCURRENT_ASKS),
        }
        self.table = HandlerTable()
        answers = Answers(limits, dev or HostDev())
        self.conversations = Conversations(self.table, now, answers, self._terms, self._notify)
        self._listeners: list[Callable[[], None]] = []
        self._again: dict[Endpoint, asyncio.Event] = {}
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._written = b""

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when handlers come, go, or change their state."""
        self._listeners.append(listener)

    def recall(self) -> None:
        """Restore the table that the last run of the driver stored."""
        self._written = content = self._folder.read(FILE) or b""
        entries = [replace(e, registration=self._classed(e.registration)) for e in load(content)]
        entries = [e for e in entries if not refused_name(e.registration, self._limits)]
        self.table.recall(entries, load_removed(content), self._now())
        if entries:
            recalled = tuple(self.table)
            held = sum(handler.on_hold for handler in recalled)
            logger.info("discovery handlers recalled count=%d on_hold=%d", len(recalled), held)
            # Before they are called: if one crashes this run, the next run knows.
            self._store(self._content())

    async def register(self, registration: Registration, folder: str | None = None) -> None:
        """Register a handler, for the first time or again; the table is stored before this returns.

        The handler stays registered if it cancels the call meanwhile.

        Args:
            registration: The registration as received.
            folder: The folder for handlers without privileges, if it registered there; else None.

        Raises:
            TableFullError: If the table is full.
            NotAllowedError: If it may not have its name, or may not register there.
        """
        endpoint = registration.endpoint
        why = refused_in_folder(registration, folder) if folder is not None else None
        if why := why or refused_name(registration, self._limits):
            raise NotAllowedError(why)
        self._enter_table(self._classed(registration, folder))
        logger.info(
            "discovery handler registered handler=%s endpoint=%s shared=%s",
            endpoint.name,
            endpoint.address,
            registration.shared,
        )
        await asyncio.shield(self._enter(endpoint))

    def _enter_table(self, registration: Registration) -> None:
        try:
            self.table.register(registration, self._now())
        except TableFullError:
            HANDLERS_REFUSED.labels("registration").inc()
            raise

    def _classed(self, registration: Registration, folder: str | None = None) -> Registration:
        """Any process that may write the folder may listen there: the handler is unprivileged."""
        folders = {folder, self._limits.network_folder} - {None, ""}
        return replace(registration, unprivileged=registration.folder in folders)

    async def _enter(self, endpoint: Endpoint) -> None:
        await self._write()
        if again := self._again.pop(endpoint, None):
            again.set()
        self._notify()

    def of(self, handler: str) -> Collection[ExternalSource]:
        """The sources of a handler name."""
        return tuple(
            ExternalSource(h.registration, h.recalled, self) for h in self.table.named(handler)
        )

    def use(self, handlers: Mapping[ConfigurationName, str]) -> None:
        """Set the current Configurations, and the handler name of each."""
        self.table.use(frozenset(handlers.values()), self._now())
        self.conversations.keep(
            lambda endpoint, name: handlers.get(name) == endpoint.name and endpoint in self.table
        )

    def reports(self, handler: str, name: ConfigurationName) -> Iterable[Report]:
        """The reports of the handlers of a name for a Configuration."""
        return self.conversations.reports(handler, name)

    def _terms(self, registration: Registration) -> Terms:
        slots = self._slots[registration.unprivileged]
        return Terms(slots, self._limits.largest_answer(registration), self._tls)

    async def run(self) -> NoReturn:
        """Remove handlers that stay offline, and store the table, until cancelled."""
        while True:
            self._changed.clear()
            self.table.prove(self._now())
            removed = self.table.expire(self._now())
            for endpoint in (handler.endpoint for handler in removed):
                self._again.pop(endpoint, None)
                logger.warning(
                    "discovery handler removed after 5 minutes Offline handler=%s endpoint=%s",
                    endpoint.name,
                    endpoint.address,
                )
            await self._write()
            if removed:
                self._notify()
            due = self.table.next_due()
            seconds = None if due is None else max((due - self._now()).total_seconds(), 0)
            await pause_until(self._changed, seconds)

    async def _write(self) -> None:
        async with self._writing:
            content = self._content()
            if content != self._written:
                await asyncio.to_thread(self._store, content)

    def _content(self) -> bytes:
        return dump(self.table.remembered(), self.table.removed)

    def _store(self, content: bytes) -> None:
        try:
            self._folder.write(FILE, content)
        except OSError as error:
            logger.warning("discovery handlers cannot be stored error=%s", error)
        else:
            self._written = content

    def _notify(self) -> None:
        self._changed.set()
        for listener in self._listeners:
            listener()

    async def pause(self, endpoint: Endpoint, seconds: float) -> None:
        """Wait `seconds`, or until the handler registers again."""
        await pause_until(self._again.setdefault(endpoint, asyncio.Event()), seconds)
