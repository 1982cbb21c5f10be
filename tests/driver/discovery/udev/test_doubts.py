"""When udevd's database is not to be believed."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.udev.doubts import PATIENCE_SECONDS, Doubts, withheld_sentence
from driver.discovery.udev.uevents import Source, Uevent

DISK = "/devices/virtual/block/loop7"
OTHER = "/devices/virtual/block/loop8"


def kernels(path: str, number: int, action: str = "change", old_path: str | None = None) -> Uevent:
    return Uevent(path, "block", old_path, action, number)


def udevds(path: str, number: int, action: str = "change") -> Uevent:
    return Uevent(path, "block", None, action, number, Source.UDEVD)


def doubts(*events: Uevent, udevd_lives: bool) -> Doubts:
    begun = Doubts()
    begun.begin(-PATIENCE_SECONDS, udevd_lives=udevd_lives)
    for event in events:
        begun.hear(event, 0.0)
    return begun


def test_beside_a_living_udevd_nothing_is_in_doubt() -> None:
    assert DISK not in doubts(udevd_lives=True)


def test_an_event_is_udevds_to_answer_for_a_while() -> None:
    waiting = doubts(kernels(DISK, 1), udevd_lives=True)

    assert waiting.is_waiting
    assert waiting.look(PATIENCE_SECONDS / 2, udevd_lives=True) == ()
    assert DISK not in waiting
    assert waiting.look(PATIENCE_SECONDS, udevd_lives=True) == (DISK,)
    assert DISK in waiting
    assert OTHER not in waiting
    assert not waiting.is_waiting


def test_the_answer_ends_the_doubt_however_late() -> None:
    late = doubts(kernels(DISK, 1), udevd_lives=True)
    late.look(PATIENCE_SECONDS, udevd_lives=True)

    late.hear(udevds(DISK, 1), PATIENCE_SECONDS)

    assert DISK not in late


def test_the_answer_to_an_earlier_event_says_nothing_of_the_last() -> None:
    twice = doubts(kernels(DISK, 1), kernels(DISK, 2), udevds(DISK, 1), udevd_lives=True)

    assert twice.is_waiting
    twice.look(1.0, udevd_lives=False)
    assert DISK in twice


def test_when_udevd_ends_what_it_has_not_answered_is_in_doubt_and_nothing_else() -> None:
    ended = doubts(kernels(DISK, 1), kernels(OTHER, 2), udevds(OTHER, 2), udevd_lives=True)

    assert ended.look(1.0, udevd_lives=False) == (DISK,)
    assert DISK in ended
    assert OTHER not in ended


def test_a_udevd_that_comes_back_does_not_answer_what_was_told_before_it_came() -> None:
    back = doubts(udevd_lives=True)
    back.look(1.0, udevd_lives=False)
    back.hear(kernels(DISK, 1), 2.0)
    back.look(3.0, udevd_lives=True)

    assert DISK in back
    back.hear(kernels(DISK, 2), 4.0)
    assert DISK in back
    back.hear(udevds(DISK, 2), 4.0)
    assert DISK not in back


def test_a_start_without_udevd_doubts_everything_until_it_is_answered() -> None:
    started = doubts(udevd_lives=False)

    started.look(1.0, udevd_lives=True)
    assert DISK in started
    started.hear(kernels(DISK, 1), 2.0)
    started.hear(udevds(DISK, 1), 2.0)
    assert DISK not in started
    assert OTHER in started


def test_events_that_were_missed_are_in_doubt_where_no_udevd_has_heard_them() -> None:
    missed = doubts(kernels(DISK, 1), udevd_lives=True)
    missed.begin(0.0, udevd_lives=True)
    assert not missed.is_waiting

    missed.begin(0.0, udevd_lives=False)
    assert DISK in missed


def test_a_udevd_that_ends_soon_after_events_were_missed_may_not_have_answered_them() -> None:
    soon, later = (doubts(kernels(DISK, 1), udevd_lives=True) for _ in range(2))
    for each, end in ((soon, PATIENCE_SECONDS - 1), (later, PATIENCE_SECONDS)):
        each.begin(0.0, udevd_lives=True)
        each.look(end, udevd_lives=False)

    assert DISK in soon
    assert OTHER in soon
    soon.hear(udevds(DISK, 2), PATIENCE_SECONDS)
    assert DISK not in soon
    assert DISK not in later


def test_what_is_gone_is_not_waited_for() -> None:
    gone = doubts(kernels(DISK, 1, "add"), kernels(DISK, 2, "remove"), udevd_lives=False)
    again = doubts(kernels(DISK, 1), kernels(DISK, 2, "remove"), udevd_lives=True)

    assert not again.is_waiting
    assert DISK in gone  # nobody knows how its entry is if it is there nevertheless


def test_what_is_below_a_device_that_moves_stays_in_doubt() -> None:
    part = doubts(udevd_lives=True)
    part.look(0.0, udevd_lives=False)
    part.hear(kernels(f"{DISK}/loop7p1", 1), 0.0)
    part.hear(kernels(OTHER, 2, "move", DISK), 0.0)

    assert f"{OTHER}/loop7p1" in part
    assert f"{DISK}/loop7p1" not in part
    assert OTHER in part


def test_a_few_devices_are_named_and_the_others_are_counted() -> None:
    assert withheld_sentence(()) is None
    sentence = withheld_sentence([f"/devices/{index}" for index in range(9)])

    assert sentence is not None
    assert "withheld: /devices/0, /devices/1, /devices/2, /devices/3 and 5 more." in sentence
    assert withheld_sentence([DISK, DISK]) == withheld_sentence([DISK])


@dataclass
class Machine:
    """A machine whose udevd lives and dies, and the doubts of one who listens.

    Attributes:
        truth: The last event of each device; an entry with another number is out of date.
        entries: Udevd's database: the event that each device's entry is of.
        queue: What udevd has heard when, and not worked off; it does so in time.
    """

    doubts: Doubts = field(default_factory=Doubts)
    udevd_lives: bool = True
    number: int = 0
    now: float = 0.0
    truth: dict[str, int] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    queue: list[tuple[float, Uevent]] = field(default_factory=list)

    def step(self, what: str, path: str) -> None:
        self.now += 1.0
        self._work_in_time()
        match what:
            case "change":
                self._kernel(path, "change")
            case "remove" if path in self.truth:
                self._kernel(path, "remove")
            case "work" if self.queue:
                self._work()
            case "end":
                self.udevd_lives, self.queue = False, []
            case "start":
                # It is seen that there was none: one that takes its place is a living one.
                self.see()
                self.udevd_lives = True
            case "miss":
                self.doubts.begin(self.now, udevd_lives=self.udevd_lives)
            case _:
                pass  # there is nothing to work off, or to remove
        if what in ("look", "end"):
            self.see()

    def _work_in_time(self) -> None:
        while self.queue and self.queue[0][0] <= self.now - PATIENCE_SECONDS:
            self._work()

    def see(self) -> None:
        self.doubts.look(self.now, udevd_lives=self.udevd_lives)

    def _kernel(self, path: str, action: str) -> None:
        self.number += 1
        event = kernels(path, self.number, action)
        if action == "remove":
            del self.truth[path]
        else:
            self.truth[path] = self.number
        if self.udevd_lives:
            self.queue.append((self.now, event))
        self.doubts.hear(event, self.now)

    def _work(self) -> None:
        _, event = self.queue.pop(0)
        if event.action == "remove":
            self.entries.pop(event.path, None)
        else:
            self.entries[event.path] = event.number
        self.doubts.hear(udevds(event.path, event.number, event.action), self.now)


STEPS = st.tuples(
    st.sampled_from(("change", "change", "remove", "work", "work", "end", "start", "look", "miss")),
    st.sampled_from((DISK, OTHER)),
)


@given(st.booleans(), st.lists(STEPS, max_size=40))
def test_no_entry_that_is_out_of_date_is_believed_without_a_living_udevd(
    lives: bool, steps: list[tuple[str, str]]
) -> None:
    machine = Machine(udevd_lives=lives)
    if not lives:
        machine.entries = {DISK: -1, OTHER: -1}
        machine.truth = {DISK: 0, OTHER: 0}
    machine.doubts.begin(machine.now, udevd_lives=lives)

    for what, path in steps:
        machine.step(what, path)
        if machine.udevd_lives and machine.queue:
            continue  # it is at work
        for device, last in machine.truth.items():
            if machine.entries.get(device, last) != last:
                assert device in machine.doubts, (what, path, device)


@given(st.booleans(), st.lists(STEPS, max_size=40))
def test_when_udevd_has_answered_for_every_device_nothing_is_in_doubt(
    lives: bool, steps: list[tuple[str, str]]
) -> None:
    machine = Machine(udevd_lives=lives)
    machine.doubts.begin(machine.now, udevd_lives=lives)
    for what, path in steps:
        machine.step(what, path)

    for what in ("start", "look"):
        machine.step(what, DISK)
    for path in (DISK, OTHER):
        machine.step("change", path)
    while machine.queue:
        machine.step("work", DISK)

    assert DISK not in machine.doubts
    assert OTHER not in machine.doubts
    assert not machine.doubts.is_waiting
