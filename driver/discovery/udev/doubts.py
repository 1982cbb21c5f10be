"""Doubts: the devices whose entries in udevd's database may be outdated.

    events of the kernel, answers of udevd, whether udevd lives ──Doubts──► the paths in doubt

udevd answers each event of the kernel with an event of the same number, once its database is up to
date. Until then the entry of the device is older than the last event: for milliseconds while udevd
works, and without a limit if no udevd runs. An entry stays valid after udevd has ended, as long as
the kernel sends no event for its device.

This process may have missed events. A running udevd has answered them or will. If no udevd runs,
every entry is in doubt until udevd answers for its device anew (`udevadm trigger`). The same holds
if udevd ends soon after events were lost: events are lost when there are many, and udevd then has a
long queue. The case that udevd ends just when a listener starts is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driver.discovery.udev.uevents import Source, Uevent
from kube.words import some_of

PATIENCE_SECONDS = 10.0
"""How long a running udevd may take for an event; after that it counts as hanging."""

MOST_NAMED = 4
"""Devices that a sentence names at most."""


@dataclass(slots=True)
class _Unanswered:
    """The last event of a device that udevd has not answered.

    Attributes:
        number: The event's number.
        since: When the first of the device's unanswered events arrived.
        is_overdue: Whether udevd did not answer it in time, or did not run.
    """

    number: int
    since: float
    is_overdue: bool


class Doubts:
    """The paths of the devices whose entries in the database are in doubt.

    From `begin` on the caller passes every event to `hear`, in the order of arrival.
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
        """Whether an answer is missing that may still come in time."""
        return any(not event.is_overdue for event in self._unanswered.values())

    def begin(self, now: float, *, udevd_lives: bool) -> None:
        """Receive all events from now on; earlier events or answers may have been missed."""
        is_first = self._all_answered_at is None
        self._all_answered_at = now if is_first else now + PATIENCE_SECONDS
        overdue = {path: event for path, event in self._unanswered.items() if event.is_overdue}
        self._udevd_lives, self._unanswered = udevd_lives, overdue
        if not udevd_lives:
            self._answered = set()

    def look(self, now: float, *, udevd_lives: bool) -> tuple[str, ...]:
        """Mark overdue events, given whether udevd lives; return the paths that came into doubt.

        A udevd that starts later does not answer earlier events. If all devices come into doubt at
        once, none is returned: the caller scans all devices when udevd ends.
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
        """Record an event."""
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
        """An answer to an earlier event leaves the last one unanswered."""
        event = self._unanswered.get(answer.path)
        if event is not None and answer.number < event.number:
            return
        self._unanswered.pop(answer.path, None)
        if self._answered is not None and answer.action != "remove":
            self._answered.add(answer.path)

    def _forget(self, path: str) -> None:
        """Drop an absent device; the kernel sends an event when it returns."""
        self._unanswered.pop(path, None)
        if self._answered is not None:
            self._answered.discard(path)

    def _move(self, old: str, new: str) -> None:
        """Devices below a device move with it, without events of their own."""
        self._forget(old)
        for path in [path for path in self._unanswered if path.startswith(f"{old}/")]:
            self._unanswered[new + path.removeprefix(old)] = self._unanswered.pop(path)


def withheld_sentence(withheld: Iterable[str]) -> str | None:
    """A sentence: which devices are withheld, and what to do; None if none is."""
    paths = sorted(set(withheld))
    if not paths:
        return None
    return (
        "udevd has not answered the kernel's last events for some devices, so its database may be"
        f" outdated and they are withheld: {some_of(paths, MOST_NAMED)}."
        " Check that systemd-udevd runs, then run udevadm trigger."
    )
