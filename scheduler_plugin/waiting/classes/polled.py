"""Classes that are judged anew every few seconds, since no event says when they may fit.

Examples: free devices for a whole gang, and the end of a back-off.
"""

from __future__ import annotations

from scheduler_plugin.waiting.classes.pod_classes import ClassKey

POLL_SECONDS = 5.0


class PolledClasses:
    """These classes, and when they are judged next, by the monotonic clock."""

    def __init__(self) -> None:
        self._pod_classes: dict[ClassKey, None] = {}
        self._at = float("-inf")

    def add(self, class_key: ClassKey) -> None:
        """Judge a class anew soon."""
        self._pod_classes[class_key] = None

    def poll_now(self) -> None:
        """Judge these classes at the next decision: a change may concern them."""
        self._at = float("-inf")

    @property
    def next_moment(self) -> float | None:
        """When they are judged next; None where there is none."""
        return self._at if self._pod_classes else None

    def are_due(self, moment: float) -> bool:
        """Whether there are classes to judge at `moment`."""
        return bool(self._pod_classes) and moment >= self._at

    def take(self, moment: float) -> tuple[ClassKey, ...]:
        """Remove and return the classes that are due."""
        if moment < self._at:
            return ()
        self._at = moment + POLL_SECONDS
        found = tuple(self._pod_classes)
        self._pod_classes.clear()
        return found
