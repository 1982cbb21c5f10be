"""What the status of Configurations says of a node's discovery handlers, kept true.

A driver that starts knows no handler for a moment, and one that restarts loses it for a moment. So
what there is to tell must stand for a while before it is written, and is taken back at once.
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
from driver.handlers.reports import (
    LATE_FIELDS,
    PROPERTIES_READ,
    Report,
    entry_of,
    status_apply,
)
from driver.plumbing.apiserver import each, field_manager
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from kube.api import (
    CONFIGURATIONS,
    After,
    ApiClient,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    Store,
    WriteOptions,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        settle: For which there must be the same to write before it is written.
        look: After which handlers in this process are asked again whether they have a problem.
        plain: For which entries go without the fields that an older definition does not have.
    """

    settle: float = 3.0
    look: float = 5.0
    plain: float = 600.0


TIMES = Times()

_NO_SUCH_FIELD = "field not declared in schema"
"""In what the API server answers to such a field; the code is 500."""

_Entry = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reporter:
    """All that a node reports of discovery.

    Attributes:
        reports: How the handlers of a name do for a Configuration.
        unread: What keeps a Configuration's properties from being read, in sentences.
        unnamed: What devices of it are not offered, in sentences.
        rivals: What devices of it are another Configuration's, too, in sentences.
    """

    reports: Callable[[str, ConfigurationName], Collection[Report]]
    unread: Callable[[Configuration], Collection[str]]
    unnamed: Callable[[ConfigurationName], Collection[str]]
    rivals: Callable[[ConfigurationName], Collection[str]] = lambda _: ()


class NodeHandlers:
    """Writes this node's entries; the store must be in sync before its queue runs.

    Its key is added whenever there may be something else to write. Of handlers in this process
    no change is heard.
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
        """Write what has been the same for long enough. Raises ApiError."""
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
        """What to tell of each Configuration, by its UID."""
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
        entry = entry and {**entry, **{name: False for name, told in marks.items() if told}}
        without = LATE_FIELDS if self._is_plain() else frozenset()
        return entry and {name: value for name, value in entry.items() if name not in without}

    def _is_plain(self) -> bool:
        return asyncio.get_running_loop().time() < self._plain_until

    def _settles_in(self, uid: str, entry: _Entry, now: float) -> float:
        """Seconds until this has stood long enough; 0 if it has."""
        before, since = self._standing.get(uid, (None, now))
        if entry is None or before != entry:
            self._standing[uid] = (entry, now)
            return 0 if entry is None else TIMES.settle
        return max(since + TIMES.settle - now, 0)

    def _differs(self, verdict: Verdict, entry: _Entry) -> bool:
        """Whether to write. What was written once and is not kept is not written for ever."""
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
            logger.warning("%s; statuses go without it: apply the chart's definitions", error)
            self._plain_until = asyncio.get_running_loop().time() + TIMES.plain
            self.queue.add(ALL)  # with what is to be told then
            return
        else:
            self._configurations.note(answer)
        self._written[verdict.uid] = entry
