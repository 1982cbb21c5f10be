"""What is kept with a value: for any history it is what would be worked out anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import Configuration, DeviceName, InstanceName
from driver.derived import Deriving, derived
from driver.devices import Device
from driver.handlers.handler_sources import Answer
from driver.instances.instances import instances_of
from driver.instances.inventory import Inventory
from driver.instances.names import TakenNames
from driver.instances.stored.objects import (
    StoredInstance,
    instance_body,
    is_anothers,
    is_of_another,
    says,
    stored_instance,
)
from driver.publishing.apply.resource_slices import AllNodesScope, NodeScope, slice_device
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, local_supply
from driver.publishing.desired.slices import Features
from tests.driver.builders import NODE, NOW, a_configuration, a_device

DEVICES = tuple(
    a_device(f"/dev/{name}", properties={"PLACE": place}) for name in "abc" for place in "12"
)
"""Of each two are the same device with another property."""

CONFIGURATIONS = tuple(
    a_configuration(capacity=capacity, unique_devices=unique, broker_properties=properties)
    for capacity, unique in ((1, True), (2, True), (2, False))
    for properties in ({}, {"FLOOR": "3"})
)
FEATURES = (Features(True, True), Features(False, False))
SCOPES = (None, NodeScope(NODE), AllNodesScope())


@dataclass(frozen=True)
class _Word(Deriving):
    text: str


class _Uppercase:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, word: _Word, ending: str) -> str:
        self.calls += 1
        return word.text.upper() + ending


def test_the_same_is_worked_out_once() -> None:
    word, uppercase = _Word("one"), _Uppercase()

    assert [derived(word, uppercase, "!") for _ in range(3)] == ["ONE!"] * 3
    assert uppercase.calls == 1


def test_something_else_is_worked_out_anew() -> None:
    word, uppercase = _Word("one"), _Uppercase()

    assert [derived(word, uppercase, e) for e in ("!", "?", "!")] == ["ONE!", "ONE?", "ONE!"]
    assert derived(replace(word, text="two"), uppercase, "!") == "TWO!"


def test_what_is_kept_is_no_part_of_the_value() -> None:
    word, other = _Word("one"), _Word("one")
    derived(word, _Uppercase(), "!")

    assert word == other
    assert hash(word) == hash(other)
    assert repr(word) == repr(other)


@dataclass(frozen=True)
class Moment:
    """All that decides what a node shows at one moment."""

    devices: tuple[Device, ...]
    configuration: Configuration
    features: Features
    held: int
    scope: Any

    def anew(self) -> Moment:
        """The same in objects that nothing is known of."""
        devices = tuple(map(replace, self.devices))
        return replace(self, devices=devices, configuration=replace(self.configuration))


@dataclass
class Chain:
    """The decisions of a node, one after another."""

    publication: Publication = field(default_factory=lambda: Publication({}))
    current: Mapping[str, InstanceName] = field(default_factory=dict)
    stored: Mapping[str, StoredInstance] = field(default_factory=dict)

    def follow(self, moment: Moment) -> object:
        """Decide, write, and say what was decided."""
        configuration = moment.configuration
        taken = TakenNames(current=self.current)
        named, _ = instances_of(moment.devices, (), configuration, NODE, taken)
        self.current = {instance.device: instance.name for instance in named}
        inventory = Inventory({configuration.name: configuration}, named, frozenset())
        self._publish(inventory, moment)
        bodies = [derived(i, instance_body, configuration, NODE) for i in named]
        return self.publication, self._devices(), bodies, self._compared(bodies)

    def _publish(self, inventory: Inventory, moment: Moment) -> None:
        place = {i.name: (i.namespace, i.name) for i in inventory.local}
        supply = replace(
            local_supply(inventory),
            held=dict.fromkeys(place.values(), moment.held),
            scopes={name: moment.scope for name in place if moment.scope},
        )
        allocated: frozenset[DeviceName] = frozenset()
        self.publication = publish(
            supply, self.publication, moment.features, allocated=allocated, now=NOW
        )

    def _devices(self) -> list[object]:
        found = [offer.device for offer in self.publication.offers.values()]
        assert found == [slice_device(offer.body) for offer in self.publication.offers.values()]
        return list(found)

    def _compared(self, bodies: list[Mapping[str, Any]]) -> list[bool]:
        """Also with what was there before; every second object is written."""
        verdicts = []
        for number, body in enumerate(bodies):
            name = body["metadata"]["name"]
            if stored := self.stored.get(name):
                verdicts += [derived(stored, says, body), derived(stored, is_of_another, body)]
                assert verdicts[-2:] == [stored.body == body, is_anothers(body, stored.body)]
            if number % 2 == 0:
                self.stored = {**self.stored, name: _as_stored(body)}
        return verdicts


def _as_stored(body: Mapping[str, Any]) -> StoredInstance:
    metadata = {**body["metadata"], "uid": "u", "resourceVersion": "1"}
    return stored_instance({**body, "metadata": metadata})


moments = st.builds(
    Moment,
    devices=st.lists(st.sampled_from(DEVICES), unique_by=lambda d: d.id).map(tuple),
    configuration=st.sampled_from(CONFIGURATIONS),
    features=st.sampled_from(FEATURES),
    held=st.integers(0, 2),
    scope=st.sampled_from(SCOPES),
)


@settings(max_examples=60)
@given(st.lists(moments, max_size=8))
def test_any_history_is_as_if_nothing_were_kept(history: list[Moment]) -> None:
    kept, anew = Chain(), Chain()
    for moment in history:
        assert kept.follow(moment) == anew.follow(moment.anew())


@settings(max_examples=50)
@given(st.lists(st.sampled_from(DEVICES)), st.lists(st.sampled_from(DEVICES)))
def test_a_list_made_anew_holds_the_devices_that_were_there(
    first: list[Device], second: list[Device]
) -> None:
    before = Answer(tuple(first), shared=False)
    made_anew = Answer(tuple(map(replace, second)), shared=True)

    found = made_anew.after(before)

    assert found == made_anew
    last = {device.id: device for device in first}
    for device in found.devices:
        assert device != last.get(device.id) or device is last[device.id]


def test_an_unchanged_device_is_the_very_same_offer() -> None:
    chain = Chain()
    before = Moment(DEVICES[:3:2], CONFIGURATIONS[0], FEATURES[0], 0, None)
    chain.follow(before)
    first = chain.publication.offers
    chain.follow(replace(before, devices=DEVICES[:5:2]))

    assert all(chain.publication.offers[name] is offer for name, offer in first.items())
    assert len(chain.publication.offers) == len(first) + 1
