"""Pods that wait for devices: they are decided about with what the API server says of devices."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from cachetools import LRUCache

from binder.reclaiming.apiserver_evidence import EvidenceReader
from kube.api import ApiError, Backoff, NotEvaluatedError, NotFoundError
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
    kind_of,
    may_want_device,
)

Stepped: TypeAlias = Callable[[Iterator[Decision | Unread | None]], Awaitable[Decision | Unread]]
"""Takes steps until one is more than None, and leaves time for others in between."""

_Turn = tuple[int, str, PodUid]
"""Urgency, age and UID: whoever comes first is less."""

READS = 10
"""How often more is read for one decision."""

ALIKE_SECONDS = 0.5
"""How long what was decided about a pod holds for others like it: no longer than one rests that
nobody could go for."""

MOST_KINDS = 1000
"""Of how many kinds of pods it is known that nobody could go for them."""

RECHECK_SECONDS = 5.0
"""How soon it is decided anew at the latest about a pod for which nobody could go: at first it is
sooner, since what changes may be about it, and later not, since thousands may wait."""

_NOBODY = Backoff(first_seconds=0.5, cap_seconds=RECHECK_SECONDS)

_Kind = tuple[bool, Hashable | None]
"""Whether it lacks room, and `kind_of`."""


@dataclass(frozen=True, slots=True)
class _InVain:
    """Nobody could go for a pod.

    Attributes:
        moment: When that was decided.
        read: What had been read of it for that.
    """

    moment: float
    read: object
    pod: PodView
    decision: Nobody

    def of(self, pod: PodView) -> Nobody:
        """The same for another pod."""
        told = self.decision.sentence.removeprefix(str(self.pod))
        is_of_pod = told != self.decision.sentence
        return replace(self.decision, sentence=f"{pod}{told}") if is_of_pod else self.decision


class DeviceWants:
    """The pods that were tried in vain, and what is decided about each."""

    def __init__(
        self,
        reader: EvidenceReader,
        world: World,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._reader = reader
        self._world = world
        self._clock = clock
        # The most urgent first: some are asked for five times a second, and thousands may wait.
        self._turns: list[_Turn] = []
        self._turn_of: dict[PodUid, _Turn] = {}
        self._evidence: dict[PodUid, Evidence] = {}
        self._monotonic = monotonic
        self._in_vain: LRUCache[Hashable, list[_InVain]] = LRUCache(MOST_KINDS)

    def follow(self, uid: PodUid) -> None:
        """A pod came, changed or went."""
        pod = self._world.facts.pod(uid)
        turn = _turn(pod) if pod is not None and may_want_device(pod) else None
        before = self._turn_of.pop(uid, None)
        if before is not None and before != turn:
            del self._turns[bisect_left(self._turns, before)]
        if turn is None:
            return
        self._turn_of[uid] = turn
        if turn != before:
            insort(self._turns, turn)

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._turn_of

    def __iter__(self) -> Iterator[PodUid]:
        """The most urgent first."""
        return (uid for _, _, uid in self._turns)

    async def decided(
        self, pod: PodView, away: Away, stepped: Stepped, *, for_room: bool
    ) -> Decision:
        """Decide about a pod, and read what is needed for that; it may be carried out after that.

        Raises ApiError or NotEvaluatedError.
        """
        kind = for_room, kind_of(pod, self._world)
        decide, known = (decide_room if for_room else decide_device), Known()
        steps = decide(pod, self._world, self._clock(), known, away)
        for _ in range(READS):
            if (same := self._in_vain_for(kind, known)) is not None:
                return same.of(pod)
            found = await stepped(steps)
            if not isinstance(found, Unread):
                if known.evidence is not None:
                    self._evidence = {pod.uid: known.evidence}
                if isinstance(found, Nobody):
                    self._note_in_vain(
                        kind, _InVain(self._monotonic(), _read_of(known), pod, found)
                    )
                return found
            try:
                known.evidence = await self._read(known.evidence, found)
            except NotFoundError:
                break
        return Nobody(f"{pod} waits, and what it needs changed meanwhile.")

    def _in_vain_for(self, kind: _Kind, known: Known) -> _InVain | None:
        """What was decided a moment ago about a pod that is like this one, as far as was read."""
        first, read = self._monotonic() - ALIKE_SECONDS, _read_of(known)
        found = self._in_vain.get(kind, ()) if kind[1] is not None else ()
        return next((one for one in found if one.moment > first and one.read == read), None)

    def _note_in_vain(self, kind: _Kind, new: _InVain) -> None:
        if kind[1] is not None:
            first = new.moment - ALIKE_SECONDS
            known = (one for one in self._in_vain.get(kind, ()) if one.moment > first)
            self._in_vain[kind] = [*known, new]

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


def nobody_seconds(times: int) -> float:
    """Until it is decided anew, by how often nobody could go."""
    return _NOBODY.delay(times, random.random)


def not_read(pod: PodView, error: ApiError | NotEvaluatedError) -> Nobody:
    """Nobody goes while it cannot be read what would serve."""
    return Nobody(f"{pod} waits, and what would serve it cannot be read: {error}")


def _read_of(known: Known) -> object:
    """What was read of the pod itself; None while nothing was."""
    evidence = known.evidence
    if evidence is None:
        return None
    return list(evidence.needs.values()), list(evidence.requests.values())


def _turn(pod: PodView) -> _Turn:
    return -pod.priority, pod.created, pod.uid
