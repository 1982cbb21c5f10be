"""Blocked classes: the head does not fit, or leaves room for a pod that has waited longer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduler_plugin.judging.verdicts import Admitted, Refused
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.decisions import Wait
from scheduler_plugin.waiting.lines.blockades import Blockades, Bottleneck
from scheduler_plugin.waiting.lines.lines import Line, Signature, claim_uids
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods
from scheduler_plugin.waiting.turns.aging import Aged, AgedPods
from scheduler_plugin.waiting.untold_pods import UntoldPods


class KeptLines:
    """Records why classes are blocked, and requeues those for which that ends."""

    def __init__(
        self, waiting: WaitingPods, untold: UntoldPods, blockades: Blockades, aged: AgedPods
    ) -> None:
        self._waiting = waiting
        self._untold = untold
        self._blockades = blockades
        self._aged = aged

    def block(
        self, line: Line, refused: Refused, bottleneck: tuple[Bottleneck, int] | None
    ) -> None:
        """The head was refused. Without a limiting quota the class waits for a change."""
        if bottleneck is not None:
            self._blockades.put(line.signature, *bottleneck)
        self.wait(line, refused.reason, refused.sentence)

    def wait(self, line: Line, reason: str, sentence: str) -> None:
        """The head is not admitted, for a reason that no verdict has."""
        line.refusal = sentence
        self._say(line, reason)

    def grow_old(self, line: Line, pod: PodView, needs: Charges, now: datetime) -> None:
        """Other classes leave room for the head of this one from now on, or no longer."""
        if self._blockades.has(line.signature):
            aged = Aged(line.signature, line.turns[0], needs, str(pod), pod.created)
            self._waiting.wake_lines(self._aged.put(aged, now))
        else:
            self._waiting.wake_lines(self._aged.drop(line.signature))

    def leaves_room(self, line: Line, admitted: Iterable[Admitted], now: datetime) -> bool:
        """Whether the head waits although it fits. If not, no class leaves room for it any more."""
        aged = self._aged.leave_room(line, admitted, now)
        if aged is not None:
            self._say(line, Wait.ROOM_IS_LEFT, str(aged))
            return True
        line.kept = ""
        self.free(line.signature)
        return False

    def free(self, signature: Signature) -> None:
        """No class leaves room for this one any more."""
        self._waiting.wake_lines(self._aged.drop(signature))

    def is_due(self, signature: Signature, first: PodView | None, now: datetime) -> bool:
        """Whether a class may fit without a change: by lapsed assumptions, or by its age."""
        hangs_on_others = signature.gang or any(claim_uids(signature))
        if hangs_on_others or not self._blockades.has(signature):
            return True
        line = self._waiting.lines.get(signature)
        if line is None or first is None:
            return False
        return self._aged.is_turned(line, first.created, now)

    def _say(self, line: Line, reason: str, kept: str = "") -> None:
        if (line.reason, line.kept) != (reason, kept):
            line.reason, line.kept = reason, kept
            self._untold.note(turn[-1] for turn in line.turns)
