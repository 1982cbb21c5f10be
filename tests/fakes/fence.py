"""A fake fence: a Lease that is ours unless a test says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class FakeFence:
    """Says whether a write may begin.

    Attributes:
        closed: Why none may; "" while the Lease is ours.
        open_for: Questions that it is open for; None for all.
        closes_at: At which of the next questions it is closed, and at no other.
        left: The seconds until the Lease ends; longer writes may not begin.
        asked: The seconds of each question.
    """

    closed: str = ""
    open_for: int | None = None
    closes_at: int = -1
    left: float = float("inf")
    asked: list[float] = field(default_factory=list)

    def why_not(self, seconds: float) -> str:
        self.asked.append(seconds)
        self.closes_at -= 1
        is_open = self.open_for is None or len(self.asked) <= self.open_for
        is_open = is_open and seconds <= self.left
        return self.closed or ("" if is_open and self.closes_at else "the Lease may be lost")
