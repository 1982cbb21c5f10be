"""Discovery handlers in processes of their own, as the driver of a node keeps them.

    registrations ──► handler table ──► a source for each handler ──► discoveries
    conversations ──reached, lost──┘

The table is written down, so that the next run of the driver asks the same handlers at once and
does not take their devices for gone. What a handler says is checked, see `messages`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import NoReturn

from google.protobuf.message import DecodeError

from driver.api import ConfigurationName
from driver.devices import Device
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.handler_conversations import (
    LostError,
    RefusedError,
    Terms,
    Turns,
    discover,
)
from driver.handlers.handler_sources import Answer, DiscoveryError, Question, pause_until
from driver.handlers.limits import (
    DEFAULT_LIMITS,
    Amount,
    HandlerLimits,
    admitted,
    excess,
    host_paths,
    refused_in_folder,
    refused_name,
    too_many,
)
from driver.handlers.messages import devices_of, few_problems, problem_of, request_without
from driver.handlers.remembered import dump, load, load_removed
from driver.handlers.reported import Reported
from driver.handlers.reports import Report
from driver.handlers.sdk_requests import TlsFiles
from driver.handlers.table import (
    Conversation,
    Endpoint,
    HandlerTable,
    Registration,
    TableFullError,
)
from driver.plumbing.disk import Folder, real_paths
from driver.plumbing.prometheus import HANDLERS_REFUSED

logger = logging.getLogger(__name__)

FILE = "handlers.json"

ON_HOLD = "The driver ended within a minute of asking it; it is asked when it registers again."

TURNS = 2
"""So many handlers are asked at a time, whose answers may have 8 MiB."""

TURNS_UNPRIVILEGED = 8
"""So many of those without privileges, whose answers are smaller."""

PAUSE_PER_WORK = 4.0
"""How long nothing more is read of a handler, by how long its last answer took."""


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
        return self._handlers.converse(self.registration, name, question)

    async def pause(self, seconds: float) -> None:
        await self._handlers.pause(self.registration.endpoint, seconds)


class ExternalHandlers:
    """The registered handlers of a node, and the conversations with them.

    Args:
        folder: Where the table is written down.
        now: The clock.
        limits: What handlers may be, give and have.
        tls: What handlers on the network are shown, and asked for; None if nothing is.
    """

    def __init__(
        self,
        folder: Folder,
        now: Callable[[], datetime] = _now,
        limits: HandlerLimits = DEFAULT_LIMITS,
        tls: TlsFiles | None = None,
    ) -> None:
        self._folder = folder
        self._now = now
        self._limits = limits
        self._tls = tls
        self._reported = Reported(limits)
        self._turns = {True: Turns(TURNS_UNPRIVILEGED), False: Turns(TURNS)}
        self.table = HandlerTable()
        self._listeners: list[Callable[[], None]] = []
        self._problems: dict[tuple[Endpoint, ConfigurationName], str] = {}
        self._again: dict[Endpoint, asyncio.Event] = {}
        self._numbers = count()
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._written = b""

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when handlers come, go, or change their state."""
        self._listeners.append(listener)

    def recall(self) -> None:
        """Read what the last run of the driver wrote down."""
        self._written = content = self._folder.read(FILE) or b""
        entries = [replace(e, registration=self._classed(e.registration)) for e in load(content)]
        entries = [e for e in entries if not refused_name(e.registration, self._limits)]
        self.table.recall(entries, load_removed(content), self._now())
        if entries:
            recalled = tuple(self.table)
            held = sum(handler.on_hold for handler in recalled)
            logger.info("discovery handlers recalled count=%d on_hold=%d", len(recalled), held)
            # Before they are asked: what they may do to this run the next one knows.
            self._store(self._content())

    async def register(self, registration: Registration, folder: str | None = None) -> None:
        """A handler registers, for the first time or again; it is written down before it counts.

        A handler that does not wait for that, though it takes long, is registered all the same.

        Args:
            registration: What it says of itself.
            folder: For handlers without privileges, in which this one registers; None for others.

        Raises:
            TableFullError: If there is no room for it.
            NotAllowedError: If it may not bear its name, or may not register there.
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
        """Whoever may write the folder may listen there, whoever has registered."""
        folders = {folder, self._limits.network_folder} - {None, ""}
        return replace(registration, unprivileged=registration.folder in folders)

    async def _enter(self, endpoint: Endpoint) -> None:
        await self._write()
        if again := self._again.pop(endpoint, None):
            again.set()
        self._tell()

    def of(self, handler: str) -> Collection[ExternalSource]:
        """The sources of a handler's name."""
        return tuple(
            ExternalSource(h.registration, h.recalled, self) for h in self.table.named(handler)
        )

    def use(self, handlers: Mapping[ConfigurationName, str]) -> None:
        """These are the Configurations in force now, and the handlers that they name."""
        self.table.use(frozenset(handlers.values()), self._now())
        for endpoint, name in list(self._problems):
            if handlers.get(name) != endpoint.name or endpoint not in self.table:
                del self._problems[endpoint, name]
        self._reported.keep(
            lambda endpoint, name: handlers.get(name) == endpoint.name and endpoint in self.table
        )

    def reports(self, handler: str, name: ConfigurationName) -> Iterable[Report]:
        """How the handlers of a name do for a Configuration."""
        for h in self.table.named(handler):
            yield Report(h.state, h.since, self._problems.get((h.endpoint, name)))

    async def run(self) -> NoReturn:
        """Remove handlers that stay away, and write down who there is, until cancelled."""
        while True:
            self._changed.clear()
            self.table.prove(self._now())
            removed = self.table.expire(self._now())
            for endpoint in (handler.endpoint for handler in removed):
                self._again.pop(endpoint, None)
                logger.warning(
                    "discovery handler removed, offline too long handler=%s endpoint=%s",
                    endpoint.name,
                    endpoint.address,
                )
            await self._write()
            if removed:
                self._tell()
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
            logger.warning("discovery handlers cannot be written down error=%s", error)
        else:
            self._written = content

    def _tell(self) -> None:
        self._changed.set()
        for listener in self._listeners:
            listener()

    async def pause(self, endpoint: Endpoint, seconds: float) -> None:
        """Wait for so long, or until the handler registers again."""
        await pause_until(self._again.setdefault(endpoint, asyncio.Event()), seconds)

    async def converse(
        self, registration: Registration, name: ConfigurationName, question: Question
    ) -> AsyncGenerator[Answer, None]:
        """Ask a handler, and yield what it answers until it is lost.

        Raises:
            DiscoveryError: When it is lost, or will not answer.
        """
        endpoint, number = registration.endpoint, next(self._numbers)
        request, withheld = _request(registration, question)
        reached = partial(self._reached, endpoint, number)
        clock = asyncio.get_running_loop().time
        try:
            if endpoint in self.table and self.table[endpoint].on_hold:
                raise LostError(ON_HOLD)
            terms = self._terms(registration)
            async with aclosing(discover(registration, request, reached, terms)) as messages:
                async for message in messages:
                    began = clock()
                    answer = await self._heard(registration, name, withheld, message)
                    del message  # It is large, and the next may be long in coming.
                    if answer:
                        yield answer
                    del answer
                    await asyncio.sleep((clock() - began) * PAUSE_PER_WORK)
        except DiscoveryError as error:
            if isinstance(error, LostError):
                self._lost(endpoint, number)
            self._note_problem(endpoint, name, str(error))
            raise
        finally:
            self.table.ended(endpoint, number)

    def _terms(self, registration: Registration) -> Terms:
        turns = self._turns[registration.unprivileged]
        return Terms(turns, self._limits.largest_answer(registration), self._tls)

    async def _heard(
        self,
        registration: Registration,
        name: ConfigurationName,
        withheld: tuple[str, ...],
        message: bytes,
    ) -> Answer | None:
        """What an answer says; None if it is not taken, so that what was said before stays."""
        response = self._read(registration, name, message)
        if isinstance(response, str):
            self._note_problem(registration.endpoint, name, response)
            return None
        devices, problems = await self._admitted(registration, response)
        told = (*withheld, *problem_of(response), *problems)
        self._note_problem(registration.endpoint, name, few_problems(told))
        return Answer(devices, registration.shared)

    def _read(
        self, registration: Registration, name: ConfigurationName, message: bytes
    ) -> v0.DiscoverResponse | str:
        """An answer, or a sentence about why it is not taken; what was said before stays.

        Raises:
            RefusedError: If it is one too many with those for other Configurations and of other
                handlers, which may go.
        """
        most = self._limits.most_devices
        if sentence := excess(message, most):
            return self._refused(sentence)
        self._check(registration, name, Amount(0, len(message)))
        try:
            response = v0.DiscoverResponse.FromString(message)
        except DecodeError:
            return "Its answer makes no sense."
        if len(response.devices) > most:
            return self._refused(too_many(most))
        amount = Amount(len(response.devices), len(message))
        self._check(registration, name, amount)
        self._reported.enter(registration, name, amount)
        return response

    def _check(self, registration: Registration, name: ConfigurationName, amount: Amount) -> None:
        if sentence := self._reported.excess(registration, name, amount):
            raise RefusedError(self._refused(sentence))

    def _refused(self, sentence: str) -> str:
        HANDLERS_REFUSED.labels("answer").inc()
        return sentence

    async def _admitted(
        self, registration: Registration, response: v0.DiscoverResponse
    ) -> tuple[tuple[Device, ...], tuple[str, ...]]:
        devices, problems = devices_of(response)
        paths = host_paths(devices)
        real = await asyncio.to_thread(real_paths, paths) if paths else {}
        name, trusted = registration.endpoint.name, registration.is_trusted
        taken, refused = admitted(devices, name, self._limits, real, trusted=trusted)
        if registration.unprivileged:
            taken = tuple(replace(device, unprivileged=True) for device in taken)
        return taken, (*refused, *problems)

    def _reached(self, endpoint: Endpoint, conversation: Conversation) -> None:
        self.table.reached(endpoint, conversation, self._now())
        self._tell()

    def _lost(self, endpoint: Endpoint, conversation: Conversation) -> None:
        self.table.lost(endpoint, conversation, self._now())
        self._tell()

    def _note_problem(self, endpoint: Endpoint, name: ConfigurationName, problem: str) -> None:
        place = (endpoint, name)
        if self._problems.get(place, "") == problem:
            return
        if problem:
            logger.warning(
                "discovery handler has a problem handler=%s endpoint=%s configuration=%s: %s",
                endpoint.name,
                endpoint.address,
                name,
                problem,
            )
            self._problems[place] = problem
        else:
            del self._problems[place]
        self._tell()


def _request(
    registration: Registration, question: Question
) -> tuple[v0.DiscoverRequest, tuple[str, ...]]:
    secrets = frozenset[str]() if registration.is_trusted else question.secrets
    return request_without(secrets, question.details, dict(question.properties))
