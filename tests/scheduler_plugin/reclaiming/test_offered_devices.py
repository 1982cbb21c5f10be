"""The table of devices: one slice at a time it comes to what going through all slices comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.api import DRIVER_NAME
from kube.shapes.reading import read_as
from kube.shapes.selection import Taint
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.placement.offered_devices import SEVERAL, OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import Offer
from scheduler_plugin.reclaiming.placement.published_slices import (
    published_slice,
)
from tests.fakes.taint_rules import a_rule, a_rule_object
from tests.left_overs import kept_in
from tests.scheduler_plugin.reclaiming.devices_builders import a_device, a_slice_object

ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["here"]}]}
    ]
}
PLACES: list[dict[str, Any]] = [
    {"nodeName": "n1"},
    {"nodeName": "n2"},
    {"allNodes": True},
    {"nodeSelector": ZONE},
    {},
]
TAINT = {"key": "gone", "effect": "NoSchedule"}


def a_slice(name: str, *devices: Any, **fields: Any) -> Any:
    """A slice as the watch brings it; `a_slice_object` says the rest."""
    return {"metadata": {"name": name}, **a_slice_object(*devices, **fields)}


def a_table(*slices: Any) -> OfferedDevices:
    table = OfferedDevices()
    for each in slices:
        table.put_slice(published_slice(each))
    return table


def a_pool(name: str, generation: int, count: int | None = 1) -> dict[str, Any]:
    return {"name": name, "generation": generation, "resourceSliceCount": count}


def named(name: str, pool: str = "n") -> DeviceId:
    return DeviceId(DRIVER_NAME, pool, name)


# Histories.

names = st.sampled_from("abcd")
pools = st.builds(
    a_pool, st.sampled_from(["p1", "p2"]), st.integers(1, 3), st.sampled_from([None, 1, 2, 3])
)
devices = st.builds(
    lambda name, place, slots, taints, model: a_device(
        name, slots=slots, taints=taints, model=model, **place
    ),
    st.sampled_from(["d1", "d2", "d3"]),
    st.sampled_from(PLACES),
    st.sampled_from([None, 2]),
    st.sampled_from([[], [TAINT]]),
    st.sampled_from(["plain", "fine"]),
)
required: dict[str, st.SearchStrategy[Any]] = {
    "driver": st.sampled_from([DRIVER_NAME, "gpu.example.com"]),
    "pool": pools,
    "devices": st.lists(devices, max_size=3, unique_by=lambda each: each["name"]),
}
contents = st.fixed_dictionaries(required, optional={"perDeviceNodeSelection": st.just(True)})


# A plain model: everything is made anew.


def by_node(found: Mapping[DeviceId, Offer]) -> dict[str, list[DeviceId]]:
    """The devices of each node; under "" those that several can use."""
    nodes: dict[str, list[DeviceId]] = {}
    for device, offer in found.items():
        nodes.setdefault(offer.node, []).append(device)
    return nodes


def offers(slices: Iterable[dict[str, Any]]) -> dict[DeviceId, Offer]:
    """The devices of all pools."""
    pools: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for obj in slices:
        spec = obj["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
    found = (offer for specs in pools.values() for offer in _of_pool(specs))
    return {offer.device: offer for offer in found}


def _of_pool(specs: list[dict[str, Any]]) -> Iterator[Offer]:
    newest = max(spec["pool"].get("generation") or 0 for spec in specs)
    now = [spec for spec in specs if (spec["pool"].get("generation") or 0) == newest]
    is_complete = len(now) == now[0]["pool"].get("resourceSliceCount")
    for spec in now:
        found = published_slice({"metadata": {"name": "s"}, "spec": spec})
        for device in found.devices:
            yield Offer(device, is_complete)


class Slices(RuleBasedStateMachine):
    """The API server's slices, and a table that hears of each change."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Any] = {}
        self.table = OfferedDevices()

    @rule(name=names, content=contents, place=st.sampled_from(PLACES))
    def write(self, name: str, content: dict[str, Any], place: dict[str, Any]) -> None:
        """A new one, another content, or another pool."""
        self.stored[name] = {"metadata": {"name": name}, "spec": {**place, **content}}
        self._put(name, changes=None)

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), generation=st.integers(1, 3), count=st.integers(1, 3))
    def renew(self, data: st.DataObject, generation: int, count: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.stored)))
        spec = self.stored[name]["spec"]
        pool = a_pool(spec["pool"]["name"], generation, count)
        self.stored[name] = {"metadata": {"name": name}, "spec": {**spec, "pool": pool}}
        self._put(name, changes=None)

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def write_the_same(self, data: st.DataObject) -> None:
        self._put(data.draw(st.sampled_from(sorted(self.stored))), changes=0)

    @rule(name=names)
    def delete(self, name: str) -> None:
        before = self.table.changes
        self.table.delete_slice(name)
        assert (self.table.changes > before) == (self.stored.pop(name, None) is not None)

    @invariant()
    def it_is_as_if_made_anew(self) -> None:
        found = offers(self.stored[name] for name in sorted(self.stored))
        everything = self.table.of_drivers(())
        assert {d: self.table.offer(d) for d in everything} == found
        assert len(everything) == len(self.table) == len(found)
        for driver in (DRIVER_NAME, "gpu.example.com"):
            own = [device for device in found if device.driver == driver]
            assert sorted(self.table.of_driver(driver)) == sorted(own)
        on = by_node(found)
        for node in ("n1", "n2", SEVERAL):
            assert sorted(self.table.on(node)) == sorted(on.get(node, ()))

    def teardown(self) -> None:
        for name in self.stored:
            self.table.delete_slice(name)
        assert kept_in(self.table) == {}

    def _put(self, name: str, changes: int | None) -> None:
        before = self.table.changes
        self.table.put_slice(published_slice(self.stored[name]))
        assert changes is None or self.table.changes == before + changes


TestSlices = Slices.TestCase
TestSlices.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


# Offers.


def test_an_offer_says_of_a_device_what_its_slice_does() -> None:
    shared = a_device("d1", slots=3, taints=[TAINT], model="fine")
    table = a_table(a_slice("s", shared, node="n"))

    offer = table.offer(named("d1"))

    assert offer is not None
    assert (offer.node, offer.slots, offer.taints) == ("n", 3, (Taint(**TAINT),))
    assert offer.is_complete
    assert offer.nodes.match("n", {})
    assert offer.value_of("moorage.dev/model") == ("string", "fine")
    assert offer.body["attributes"] == {"moorage.dev": {"model": "fine"}}
    assert offer.body["allowMultipleAllocations"] is True


def test_devices_that_cel_cannot_tell_apart_share_a_digest_and_a_text() -> None:
    one, other = a_slice("s1", "d1", node="n1"), a_slice("s2", "d2", node="n2")
    third = a_slice("s3", a_device("d3", model="fine"), node="n3")
    table = a_table(one, other, third)

    found = [table.offer(named(f"d{n}", f"n{n}")) for n in (1, 2, 3)]

    first, second, fine = (offer for offer in found if offer is not None)
    assert first.digest == second.digest != fine.digest
    assert first.published.text is second.published.text


def test_what_was_returned_stays_while_the_table_goes_on() -> None:
    table = a_table(a_slice("s", "d1", node="n"))
    on, own = table.on("n"), table.of_driver(DRIVER_NAME)

    table.delete_slice("s")

    assert (list(on), list(own)) == ([named("d1")], [named("d1")])
    assert table.offer(named("d1")) is None


def test_a_rule_taints_the_devices_that_it_selects_until_it_is_deleted() -> None:
    table = a_table(a_slice("s", a_device("a"), a_device("b"), pool=a_pool("n", 1)))
    taint, before = Taint("example.com/repair", None, "NoSchedule"), table.changes

    table.put_rule(a_rule(pool="n", device="a"))

    def taints() -> list[list[Taint]]:
        offers = [table.offer(named(name)) for name in "ab"]
        return [[Taint(t.key, t.value, t.effect) for t in o.taints] for o in offers if o]

    assert taints() == [[taint], []]
    (_, ruled) = next(table.pools(()))
    table.delete_rule("repair")
    assert taints() == [[], []]
    # What was remembered of the pool's devices counts no longer.
    assert next(table.pools(()))[1] is not ruled
    assert table.changes == before + 2


def test_a_rule_changes_only_the_pools_that_it_selects() -> None:
    """What was remembered of the others counts on: a cluster has thousands of pools."""
    slices = [a_slice(f"s-{n}", a_device("a" * n), pool=a_pool(f"p-{n}", 1)) for n in (1, 2, 3)]
    table = a_table(*slices)

    def changed(*rules: DeviceTaintRule) -> set[str]:
        before = dict(table.pools(()))
        for each in rules:
            table.put_rule(each)
        return {key[1] for key, pool in table.pools(()) if pool is not before[key]}

    assert changed(a_rule(pool="p-1")) == {"p-1"}
    assert changed(a_rule(pool="p-1", driver="gpu.example.com")) == {"p-1"}, "it no longer has it"
    assert changed(a_rule(pool="p-9")) == set()
    assert changed(a_rule(device="aa")) == {"p-2"}
    assert changed(a_rule(device="aaa", driver=DRIVER_NAME)) == {"p-2", "p-3"}
    assert changed(a_rule()) == {"p-1", "p-2", "p-3"}


def test_the_status_of_a_rule_changes_nothing() -> None:
    """kube-controller-manager writes into it while it evicts."""
    table = a_table(a_slice("s", a_device("a"), pool=a_pool("n", 1)))
    table.put_rule(a_rule())
    before = table.changes

    evicting = {"conditions": [{"type": "EvictionInProgress", "status": "True"}]}
    table.put_rule(read_as(DeviceTaintRule, {**a_rule_object(), "status": evicting}))

    assert table.changes == before
