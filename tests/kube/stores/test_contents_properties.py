"""Whatever order lists, watches, repetitions and own writes come in, the store ends up right.

A small API server with a history is the model. The machine lets it write, and feeds the contents
from lists (item by item, restarted at will), from the running watch, from lists beside it, and
from answers to own writes that arrive at any later time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kube.objects import JsonObject, ObjectKey
from kube.stores.changes import Added, Deleted, Modified, Skipped
from kube.stores.contents import Contents, Facts
from tests.kube.builders import an_object

NAMES = st.sampled_from("abc")
DATA = st.sampled_from(["x", "y", "hidden"])

# UID, version and data: the version makes it visible if something is told twice.
Value = tuple[str, int, str]


def project(obj: JsonObject) -> Value | None:
    metadata = obj["metadata"]
    data = obj["data"]["v"]
    if data == "hidden":
        return None
    return (metadata["uid"], int(metadata["resourceVersion"]), data)


@dataclass
class ModelServer:
    """Objects, and the events that led to them."""

    version: int = 10
    objects: dict[str, JsonObject] = field(default_factory=dict)
    history: list[tuple[int, bool, JsonObject]] = field(default_factory=list)

    def write(self, name: str, data: str) -> JsonObject:
        self.version += 1
        before = self.objects.get(name)
        uid = before["metadata"]["uid"] if before else f"{name}-{self.version}"
        obj = an_object(name, self.version, data, uid=uid)
        self.objects[name] = obj
        self.history.append((self.version, True, obj))
        return obj

    def delete(self, name: str) -> None:
        self.version += 1
        before = self.objects.pop(name)
        obj = an_object(name, self.version, before["data"]["v"], uid=before["metadata"]["uid"])
        self.history.append((self.version, False, obj))

    def next_after(self, version: int) -> tuple[int, bool, JsonObject] | None:
        return next((event for event in self.history if event[0] > version), None)


class StoreMachine(RuleBasedStateMachine):
    """One store beside one server."""

    def __init__(self) -> None:
        super().__init__()
        self.server = ModelServer()
        self.contents = Contents(project, {"data": lambda value: [value[2]]})
        self.folded: dict[ObjectKey, Value] = {}
        self.told: set[tuple[ObjectKey, int]] = set()
        self.answers: list[JsonObject] = []
        self.pages: list[JsonObject] | None = None
        self.list_version = 0
        self.seen: set[ObjectKey] = set()
        self.sent = 0
        self.refresh: list[JsonObject] | None = None
        self.refresh_version = 0
        self.refreshed: set[ObjectKey] = set()

    def fold(self, facts: Facts[Value]) -> None:
        for fact in facts:
            match fact:
                case Added(key, new):
                    assert key not in self.folded
                    self.tell(key, new)
                case Modified(key, old, new):
                    assert self.folded[key] == old
                    assert old[0] == new[0]
                    assert new[1] > old[1]
                    self.tell(key, new)
                case Deleted(key, old):
                    assert self.folded.pop(key) == old
                case Skipped():
                    raise AssertionError(fact)

    def tell(self, key: ObjectKey, new: Value) -> None:
        assert (key, new[1]) not in self.told
        self.told.add((key, new[1]))
        self.folded[key] = new

    @initialize()
    def first_list(self) -> None:
        self.begin_list()
        self.finish_list()

    @rule(name=NAMES, data=DATA)
    def write(self, name: str, data: str) -> None:
        self.answers.append(self.server.write(name, data))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.server.objects:
            self.server.delete(name)

    @precondition(lambda self: self.answers)
    @rule(choice=st.integers(0, 50))
    def note(self, choice: int) -> None:
        self.fold(self.contents.note(self.answers[choice % len(self.answers)]))

    @rule(dice=st.integers(0, 3))
    def expire(self, dice: int) -> None:
        """Answer 410: halfway through a list, or instead of a watch; not all of the time."""
        if dice == 0:
            self.begin_list()

    def begin_list(self) -> None:
        self.pages = list(self.server.objects.values())
        self.list_version = self.server.version
        self.seen = set()
        self.refresh = None

    @precondition(lambda self: self.pages)
    @rule()
    def take_item(self) -> None:
        assert self.pages
        self.fold(self.contents.list_item(self.pages.pop(0), self.seen))

    @precondition(lambda self: self.pages is not None)
    @rule()
    def finish_list(self) -> None:
        while self.pages:
            self.take_item()
        self.fold(self.contents.finish_list(self.seen, self.list_version))
        self.pages = None
        self.sent = self.contents.position

    @precondition(lambda self: self.pages is None)
    @rule()
    def begin_refresh(self) -> None:
        self.refresh = list(self.server.objects.values())
        self.refresh_version = self.server.version
        self.refreshed = set()

    @precondition(lambda self: self.refresh)
    @rule()
    def take_refresh_item(self) -> None:
        assert self.refresh
        self.fold(self.contents.list_item(self.refresh.pop(0), self.refreshed, beside_watch=True))

    @precondition(lambda self: self.refresh is not None)
    @rule()
    def finish_refresh(self) -> None:
        while self.refresh:
            self.take_refresh_item()
        self.fold(self.contents.finish_list(self.refreshed, self.refresh_version))
        self.refresh = None

    @precondition(lambda self: self.pages is None)
    @rule(count=st.integers(1, 8))
    def take_events(self, count: int) -> None:
        for _ in range(count):
            if event := self.server.next_after(self.sent):
                self.take_event(event)

    def take_event(self, event: tuple[int, bool, JsonObject]) -> None:
        version, exists, obj = event
        self.sent = version
        self.fold(self.contents.observe(obj, is_gone=not exists))

    @precondition(lambda self: self.pages is None)
    @rule()
    def resume(self) -> None:
        self.sent = self.contents.position

    @precondition(lambda self: self.pages is None)
    @rule(back=st.integers(1, 5))
    def repeat(self, back: int) -> None:
        """What was sent comes again, as after a server that answers from an older version."""
        self.sent = max(0, self.sent - back)

    @precondition(lambda self: self.pages is None)
    @rule()
    def bookmark(self) -> None:
        """The server bookmarks what it has sent, up to the next event."""
        event = self.server.next_after(self.sent)
        self.contents.bookmark(event[0] - 1 if event else self.server.version)

    @invariant()
    def changes_folded_are_the_contents(self) -> None:
        assert dict(self.contents.items()) == self.folded
        for value in self.folded.values():
            assert value in self.contents.by_index("data", value[2])

    def teardown(self) -> None:
        if self.pages is not None:
            self.finish_list()
        while event := self.server.next_after(self.sent):
            self.take_event(event)

        expected = {obj["metadata"]["name"]: project(obj) for obj in self.server.objects.values()}
        assert {key.name: value for key, value in self.contents.items()} == {
            name: value for name, value in expected.items() if value
        }
        self.changes_folded_are_the_contents()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=100, stateful_step_count=40)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=300)
def test_store_is_right_after_a_long_history(seed: int) -> None:
    """Hypothesis shrinks well but rarely comes across the long way to a lost race; chance does."""
    chance = random.Random(seed)
    machine = StoreMachine()
    machine.first_list()

    for _ in range(120):
        step(machine, chance)
        machine.changes_folded_are_the_contents()

    machine.teardown()


def step(machine: StoreMachine, chance: random.Random) -> None:
    listing, refreshing = machine.pages is not None, machine.refresh is not None
    name, data = chance.choice("abc"), chance.choice(["x", "y", "hidden"])
    possible: list[tuple[int, bool, Callable[[], None]]] = [
        (4, True, lambda: machine.write(name, data)),
        (2, True, lambda: machine.delete(name)),
        (3, bool(machine.answers), lambda: machine.note(len(machine.answers) - 1)),
        (1, bool(machine.answers), lambda: machine.note(chance.randrange(50))),
        (1, True, lambda: machine.expire(chance.randrange(3))),
        (4, bool(machine.pages), machine.take_item),
        (1, listing, machine.finish_list),
        (2, not listing and not refreshing, machine.begin_refresh),
        (4, bool(machine.refresh), machine.take_refresh_item),
        (1, refreshing, machine.finish_refresh),
        (4, not listing, lambda: machine.take_events(chance.randint(1, 4))),
        (1, not listing, machine.resume),
        (1, not listing, machine.bookmark),
        (1, not listing, lambda: machine.repeat(chance.randint(1, 5))),
    ]
    steps = [(weight, act) for weight, is_possible, act in possible if is_possible]
    [act] = chance.choices([act for _, act in steps], [weight for weight, _ in steps])
    act()
