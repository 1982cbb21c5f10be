"""Writes the state of a node's discovery handlers into the status of Configurations.

A driver knows no handler just after its start, and a handler that restarts is unreachable for a
moment. So an entry is written only after it was the same for a while, and is removed at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import Configuration, ConfigurationName, NodeName
from driver.configurations.conditions import DEVICES_DISTINCT
from driver.configurations.configurations import Verdict, holders
from driver.handlers.status_entries import (
    LATE_FIELDS,
    PROPERTIES_READ,
    Report,
    entry_of,
    status_apply,
)
from driver.plumbing.apiserver import each, field_manager
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    WriteOptions,
)
from kube.kinds import CONFIGURATIONS
from kube.reconciling.api import After
from kube.stores.api import Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        settle: How long an entry must stay the same before it is written.
        look: Interval at which problems of handlers in this process are checked.
        plain: How long entries are written without new fields after the API server refused them.
    """

    settle: float = 3.0
    look: float = 5.0
    plain: float = 600.0


TIMES = Times()

_NO_SUCH_FIELD = "field not declared in schema"
"""Part of the API server's answer to a field that is not in its definition; the status is 500."""

_Entry = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reporter:
    """The sources of a node's entries.

    Attributes:
        reports: The reports of the handlers of a name for a Configuration.
        unread: Sentences about discovery properties that cannot be read.
        unnamed: Sentences about devices that are not offered.
        rivals: Sentences about devices that another Configuration has, too.
    """

    reports: Callable[[str, ConfigurationName], Collection[Report]]
    unread: Callable[[Configuration], Collection[str]]
    unnamed: Callable[[ConfigurationName], Collection[str]]
    rivals: Callable[[ConfigurationName], Collection[str]] = lambda _: ()


class NodeHandlers:
    """Writes this node's entries; the store must be in sync before its queue runs.

    The key is added whenever an entry may have changed. Handlers in this process report no changes,
    so they are checked at an interval.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        reporter: Reporter,
        configurations: Store[Verdict],
    ) -> None:
        self._client = client
        self._node = node
        self._reporter = reporter
        self._configurations = configurations
        self.queue = whole_reconciler("writing the status of handlers", self.reconcile)
        self._standing: dict[str, tuple[_Entry, float]] = {}
        self._written: dict[str, _Entry] = {}
        self._plain_until = float("-inf")

    async def reconcile(self) -> After:
        """Write the entries that have been the same for long enough. Raises ApiError."""
        wanted = self._wanted()
        for known in (self._standing, self._written):
            for uid in known.keys() - wanted.keys():
                del known[uid]
        now = asyncio.get_running_loop().time()
        waits: list[float] = [TIMES.look]
        due: list[tuple[Verdict, _Entry]] = []
        for uid, (verdict, entry) in wanted.items():
            if wait := self._settles_in(uid, entry, now):
                waits.append(wait)
            elif self._differs(verdict, entry):
                due.append((verdict, entry))
        await each(due, self._write)
        return After(min(waits))

    def _wanted(self) -> dict[str, tuple[Verdict, _Entry]]:
        """The entry of each Configuration by its UID; None for no entry."""
        verdicts = tuple(self._configurations)
        held = {verdict.uid for verdict in holders(verdicts).values()}
        return {v.uid: (v, self._entry(v) if v.uid in held else None) for v in verdicts}

    def _entry(self, verdict: Verdict) -> _Entry:
        if verdict.configuration is None:
            return None
        handler = verdict.configuration.handler
        reports = self._reporter.reports(handler, verdict.name)
        unread = self._reporter.unread(verdict.configuration)
        rivals = self._reporter.rivals(verdict.name)
        entry = entry_of(
            self._node,
            handler,
            reports,
            (*unread, *rivals),
            left_out=self._reporter.unnamed(verdict.name),
        )
        marks = {PROPERTIES_READ: unread, DEVICES_DISTINCT: rivals}
        entry = entry and {
            **entry,
            **{name: False for name, sentences in marks.items() if sentences},
        }
        without = LATE_FIELDS if self._is_plain() else frozenset()
        return entry and {name: value for name, value in entry.items() if name not in without}

    def _is_plain(self) -> bool:
        return asyncio.get_running_loop().time() < self._plain_until

    def _settles_in(self, uid: str, entry: _Entry, now: float) -> float:
        """Seconds until the entry has been the same for long enough; 0 if it has been."""
        before, since = self._standing.get(uid, (None, now))
        if entry is None or before != entry:
            self._standing[uid] = (entry, now)
            return 0 if entry is None else TIMES.settle
        return max(since + TIMES.settle - now, 0)

    def _differs(self, verdict: Verdict, entry: _Entry) -> bool:
        """Whether to write the entry. An entry that the API server drops is written only once."""
        if verdict.entries.get(self._node) == entry:
            self._written.pop(verdict.uid, None)
            return False
        return verdict.uid not in self._written or self._written[verdict.uid] != entry

    async def _write(self, item: tuple[Verdict, _Entry]) -> None:
        verdict, entry = item
        body = status_apply(verdict.namespace, verdict.name, verdict.uid, entry)
        path = CONFIGURATIONS.at(verdict.name, verdict.namespace, "status")
        options = WriteOptions(field_manager=field_manager(self._node))
        try:
            answer = await self._client.apply(path, body, force=True, options=options)
        except (ConflictError, NotFoundError) as error:
            logger.debug("the Configuration has changed: %s", error)
            return
        except (ForbiddenError, InvalidError) as error:
            logger.warning("status not written configuration=%s: %s", verdict.name, error)
        except ApiError as error:
            if _NO_SUCH_FIELD not in error.message or not LATE_FIELDS & (entry or {}).keys():
                raise
            logger.warning(
                "%s; statuses are written without the field: apply the chart's definitions", error
            )
            self._plain_until = asyncio.get_running_loop().time() + TIMES.plain
            self.queue.add(ALL)  # To write the entry without new fields.
            return
        else:
            self._configurations.note(answer)
        self._written[verdict.uid] = entry
