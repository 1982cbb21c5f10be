"""How long what is found at rest has to stay before it is a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.chaos.findings import Finding

SECONDS = 75.0
"""For so long a finding at rest has to stay: longer than a hold, and than what is forgotten."""
SLOT_SECONDS = 12.0
"""The same of slots: 2 s, once the longest pause is over that a driver makes between two tries."""
LEFT_OVER_SECONDS = 140.0
"""The same of what is left over: a leader clears it two minutes after it saw it first."""
BY_RULE = {
    "anothers-device": 0.0,
    "left-over": LEFT_OVER_SECONDS,
    **dict.fromkeys(("slot-of-nobody", "held-twice", "not-held"), SLOT_SECONDS),
}
"""What may not be for so long either, by its rule."""


@dataclass
class Patience:
    """Since when each finding is there.

    What is left over is there since the leader serves: each leader measures the grace period
    from the time at which it first observed the state, and liveness probes end leaders.

    Attributes:
        leader: The holder of the scheduler side's lease at the last look.
    """

    since: dict[Finding, float] = field(default_factory=dict)
    leader: str = ""

    def look(self, found: Iterable[Finding], leader: str, now: float) -> list[Finding]:
        """What has stayed long enough. `found` is all that is found at `now`, in seconds."""
        if leader != self.leader:
            self.leader = leader
            self.since = {each: at for each, at in self.since.items() if not _is_left_over(each)}
        self.since = {each: self.since.get(each, now) for each in set(found)}
        return sorted(
            each for each, at in self.since.items() if now - at >= BY_RULE.get(each.rule, SECONDS)
        )

    def overdue(self) -> list[Finding]:
        """What is there and is no left-over, which is looked at again at the next rest."""
        return sorted(each for each in self.since if not _is_left_over(each))


def _is_left_over(finding: Finding) -> bool:
    return finding.rule == "left-over"
