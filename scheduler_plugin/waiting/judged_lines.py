"""The verdict on an equivalence class: on its head, or on the whole gang of that pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import MayCome, NotTogether, Together, tried_together
from scheduler_plugin.judging.turns import asked_together
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.decisions import Wait
from scheduler_plugin.waiting.kept_lines import KeptLines
from scheduler_plugin.waiting.lines.blockades import (
    bottleneck_of,
    lacks_together,
    needed_together,
)
from scheduler_plugin.waiting.lines.lines import Line
from scheduler_plugin.waiting.lines.soon_lines import SoonLines
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods

TooFew = Callable[[Sequence[PodView]], str]
"""Why there are too few devices for the pods of a gang; "" where there may be enough."""

Going: TypeAlias = tuple[tuple[PodView, Admitted], ...]
"""The pods to admit now, each with its verdict, which counts the pods before it."""


class JudgedLines:
    """Judges classes, and records why a class is blocked."""

    def __init__(
        self,
        world: World,
        lines: tuple[WaitingPods, KeptLines, SoonLines],
        find: Callable[[PodUid], PodView | None],
        may_come: MayCome,
        too_few: TooFew,
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            lines: All classes, the blocked ones, and those that are polled.
            find: Returns a waiting pod as it is to be judged, and None for any other.
            may_come: The same for a pod of a PodGroup, whether it waits or not.
            too_few: Says whether a gang lacks devices.
        """
        self._world = world
        self._waiting, self._kept, self._soon = lines
        self._find, self._may_come, self._too_few = find, may_come, too_few

    def judge(self, line: Line, now: datetime) -> Going:
        """The pods of a class to admit; none where the class is blocked."""
        pod = self._find(self._waiting.next_of(line))
        assert pod is not None, "a pod that waits is known"
        going = self._together if line.signature.gang else self._alone
        found = going(line, pod, now)
        if found:
            self._waiting.wake_lines((line.signature,))
        return found

    def _alone(self, line: Line, pod: PodView, now: datetime) -> Going:
        verdict = judge(pod, self._world.facts.claims_of(pod), self._world)
        if isinstance(verdict, Refused):
            if verdict.reason is Reason.BORROWING_BACKOFF:
                self._soon.add(line.signature)
            self._kept.block(line, verdict, bottleneck_of(pod, verdict, self._world))
            self._kept.grow_old(line, pod, line.asks, now)
            return ()
        is_held = pod.uid in self._world.assumptions.holds
        if not is_held and self._kept.leaves_room(line, (verdict,), now):
            return ()
        return ((pod, verdict),)

    def _together(self, line: Line, pod: PodView, now: datetime) -> Going:
        """The same for a whole gang. Some of its pods may be in no class."""
        trial = self._world.trial()
        found = tried_together(pod, trial, self._may_come)
        lacks = lacks_together(found, trial)
        if isinstance(found, NotTogether):
            self._kept.block(line, found.refused, needed_together(lacks, self._world))
            self._kept.grow_old(line, pod, asked_together(found.pods, self._world.facts), now)
            return ()
        if not self._is_held(found) and self._is_kept(line, found, now):
            return ()
        in_line = tuple(each for each in found.admitted if each[0].uid in self._waiting)
        for each, verdict in found.admitted:
            if each.uid not in self._waiting:
                assume(each, verdict, self._world, now)
        return in_line

    def _is_held(self, found: Together) -> bool:
        return any(each.uid in self._world.assumptions.holds for each, _ in found.admitted)

    def _is_kept(self, line: Line, found: Together, now: datetime) -> bool:
        """Whether a gang that fits waits: for devices, or because it leaves room."""
        if why := self._too_few([each for each, _ in found.admitted]):
            self._soon.add(line.signature)
            self._kept.wait(line, Wait.NO_DEVICE_FREE, why)
            return True
        return self._kept.leaves_room(line, (verdict for _, verdict in found.admitted), now)
