"""Pods that wait for devices: they are decided about with what the API server says of devices."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Protocol, TypeVar

from binder.reclaiming.apiserver_evidence import EvidenceReader
from kube.api import ApiError, NotFoundError
from scheduler_plugin.api import (
    Away,
    Decision,
    Evidence,
    Known,
    Nobody,
    PodUid,
    PodView,
    Take,
    Unread,
    World,
    decide_device,
    decide_room,
    is_device_due,
    is_room_due,
    may_want_device,
)

T = TypeVar("T")

_Turn = tuple[int, str, PodUid]
"""Urgency, age and UID: whoever comes first is less."""

AT_ONE_TIME = 10
"""How many of them are decided about before those that lack room have their turn again."""

READS = 10
"""How often more is read for one decision."""


class Stepped(Protocol):
    """Takes steps until one is more than None, and leaves time for others in between."""

    async def __call__(self, steps: Iterator[T | None]) -> T: ...


class DeviceWants:
    """The pods that were tried in vain, and what is decided about each."""

    def __init__(self, reader: EvidenceReader, world: World, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._world = world
        self._clock = clock
        # The most urgent first: some are asked for five times a second, and thousands may wait.
        self._turns: list[_Turn] = []
        self._turn_of: dict[PodUid, _Turn] = {}
        # Those that were never asked, and the others: who was asked longest ago is first.
        self._new: dict[PodUid, None] = {}
        self._asked: dict[PodUid, None] = {}
        self._evidence: dict[PodUid, Evidence] = {}

    def follow(self, uid: PodUid) -> None:
        """A pod came, changed or went."""
        pod = self._world.facts.pod(uid)
        turn = _turn(pod) if pod is not None and may_want_device(pod) else None
        before = self._turn_of.pop(uid, None)
        if before is not None and before != turn:
            del self._turns[bisect_left(self._turns, before)]
        if turn is None:
            self._new.pop(uid, None)
            self._asked.pop(uid, None)
            return
        self._turn_of[uid] = turn
        if turn != before:
            insort(self._turns, turn)
        if before is None:
            self._new[uid] = None

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._turn_of

    def waiting(self, is_due: Callable[[PodUid], bool]) -> list[PodUid]:
        """Those that are due, and not too many: the most urgent, and whoever is asked least.

        Ten that wait in vain would be all that are ever asked, were it by urgency alone.
        """
        urgent = (uid for _, _, uid in self._turns if is_due(uid))
        found = dict.fromkeys(islice(urgent, AT_ONE_TIME // 2))
        others = (uid for uid in chain(self._new, self._asked) if uid not in found and is_due(uid))
        found |= dict.fromkeys(islice(others, AT_ONE_TIME - len(found)))
        for uid in found:
            self._new.pop(uid, None)
            self._asked.pop(uid, None)
            self._asked[uid] = None
        return list(found)

    async def decided(
        self, pod: PodView, away: Away, stepped: Stepped, *, for_room: bool
    ) -> Decision:
        """Decide about a pod, and read what is needed for that; it may be carried out after that.

        Raises ApiError.
        """
        decide, known = (decide_room if for_room else decide_device), Known()
        steps = decide(pod, self._world, self._clock(), known, away)
        for _ in range(READS):
            found: Decision | Unread = await stepped(steps)
            if not isinstance(found, Unread):
                if known.evidence is not None:
                    self._evidence = {pod.uid: known.evidence}
                return found
            try:
                known.evidence = await self._read(known.evidence, found)
            except NotFoundError:
                break
        return Nobody(f"{pod} waits, and what it needs changed meanwhile.")

    async def _read(self, evidence: Evidence | None, unread: Unread) -> Evidence:
        if evidence is None:
            return await self._reader.read(unread.seekers)
        return evidence.with_nodes(await self._reader.read_nodes(unread.nodes))

    def is_due(self, take: Take, away: Away, *, for_room: bool) -> bool:
        """Whether what was decided last is still to be carried out."""
        evidence = self._evidence.get(take.pod.uid)
        if evidence is None:
            return False
        is_due = is_room_due if for_room else is_device_due
        return is_due(take, self._world, self._clock(), evidence, away)


def not_read(pod: PodView, error: ApiError) -> Nobody:
    """Nobody goes while it cannot be read what would serve."""
    return Nobody(f"{pod} waits, and what would serve it cannot be read: {error}")


def _turn(pod: PodView) -> _Turn:
    return -pod.priority, pod.created, pod.uid
