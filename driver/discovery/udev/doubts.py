"""Doubts: of which devices udevd's database may tell what was, and not what is.

    events of the kernel, answers of udevd, whether udevd lives ──Doubts──► the paths in doubt

udevd answers each event of the kernel by an event of its own, with the same number, when its
database is up to date. Until then the entry of that device is older than the device's last event:
while udevd works on it that is a matter of milliseconds, and without a living udevd it stays so.
The entry of a device of which the kernel told nothing since is believed though udevd has ended.

What was told while nobody listened here is udevd's to know: if it lives, it has answered or will;
if not, every entry is in doubt until udevd answers for its device anew (`udevadm trigger`). The
same where it ends soon after events were lost, since they are lost where there are many, of which
it has a long row before it. That it ends in the moment in which a listener starts is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driver.discovery.udev.uevents import Source, Uevent
from kube.words import some_of

PATIENCE_SECONDS = 10.0
"""How long a udevd that lives may need for an event; one that hangs is as good as dead."""

MOST_TOLD = 4
"""So many devices are named in a sentence."""


@dataclass(slots=True)
class _Unanswered:
    """The last event of a device.

    Attributes:
        number: The event's.
        since: When the first of those was heard that are not answered.
        is_overdue: Whether there is, or was, no udevd to answer it in time.
    """

    number: int
    since: float
    is_overdue: bool


class Doubts:
    """The paths of the devices whose entries in the database are in doubt.

    To be told of every event in the order in which they come, from `begin` on.
    """

    def __init__(self) -> None:
        self._udevd_lives = False
        self._all_answered_at: float | None = None
        self._unanswered: dict[str, _Unanswered] = {}
        self._answered: set[str] | None = None

    def __contains__(self, path: object) -> bool:
        event = self._unanswered.get(path) if isinstance(path, str) else None
        if event is not None:
            return event.is_overdue
        return self._answered is not None and path not in self._answered

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is not there that may still come in time."""
        return any(not event.is_overdue for event in self._unanswered.values())

    def begin(self, now: float, *, udevd_lives: bool) -> None:
        """From now on all events are heard; before, some or all were not, nor their answers."""
        is_first = self._all_answered_at is None
        self._all_answered_at = now if is_first else now + PATIENCE_SECONDS
        overdue = {path: event for path, event in self._unanswered.items() if event.is_overdue}
        self._udevd_lives, self._unanswered = udevd_lives, overdue
        if not udevd_lives:
            self._answered = set()

    def look(self, now: float, *, udevd_lives: bool) -> tuple[str, ...]:
        """See who waits in vain, given whether there is a udevd; the paths that are new in doubt.

        A udevd that comes later does not answer what was told before it came. If all come to be in
        doubt they are not new: whoever saw udevd end looks at all devices.
        """
        has_ended = self._udevd_lives and not udevd_lives
        if has_ended and self._all_answered_at is not None and now < self._all_answered_at:
            self._answered = set()
        self._udevd_lives = udevd_lives
        latest = now - PATIENCE_SECONDS if udevd_lives else now
        new = [p for p, e in self._unanswered.items() if not e.is_overdue and e.since <= latest]
        for path in new:
            self._unanswered[path].is_overdue = True
        return tuple(new)

    def hear(self, event: Uevent, now: float) -> None:
        """Take note of an event."""
        if event.source is Source.UDEVD:
            self._hear_answer(event)
        elif event.action == "remove":
            self._forget(event.path)
        else:
            if event.old_path is not None:
                self._move(event.old_path, event.path)
            is_overdue = not self._udevd_lives
            unanswered = _Unanswered(event.number, now, is_overdue)
            self._unanswered.setdefault(event.path, unanswered).number = event.number

    def _hear_answer(self, answer: Uevent) -> None:
        """It may be one to an earlier event; then the last is still to be answered."""
        event = self._unanswered.get(answer.path)
        if event is not None and answer.number < event.number:
            return
        self._unanswered.pop(answer.path, None)
        if self._answered is not None and answer.action != "remove":
            self._answered.add(answer.path)

    def _forget(self, path: str) -> None:
        """It is gone; should it come back, the kernel says so."""
        self._unanswered.pop(path, None)
        if self._answered is not None:
            self._answered.discard(path)

    def _move(self, old: str, new: str) -> None:
        """What is below a device moves with it, without events of its own."""
        self._forget(old)
        for path in [path for path in self._unanswered if path.startswith(f"{old}/")]:
            self._unanswered[new + path.removeprefix(old)] = self._unanswered.pop(path)


def told(withheld: Iterable[str]) -> str | None:
    """Which devices are withheld, and what mends it; None if none are."""
    paths = sorted(set(withheld))
    if not paths:
        return None
    return (
        "udevd has not answered what the kernel told of these devices, so that its database may"
        f" tell what they were before, and they are withheld: {some_of(paths, MOST_TOLD)}."
        " See that systemd-udevd runs, and run udevadm trigger."
    )
