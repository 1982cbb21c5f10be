"""The most devices of a class on one node: counted as slices come and go, and by going through."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.device_counts import MAX_RESULTS, DeviceCounts
from scheduler_plugin.objects.devices.devices import ClassView, SliceView
from tests.left_overs import kept_in

OURS, OTHERS = "moorage.dev", "gpu.example.com"
ORIGINS = [("onvif", "onvif-1"), ("onvif", "onvif-2"), ("usb", "usb-1")]
CLASSES = [
    ClassView(name=ClassName(name), configuration=ResourceKey(configuration), drivers=drivers)
    for name, configuration in [("onvif", "onvif"), ("onvif-1", "onvif"), ("any", "")]
    for drivers in [(), (OURS,), (OTHERS,), (OURS, OURS), (OURS, OTHERS)]
]

amounts = st.integers(1, 20)
nodes = st.sampled_from(["", "node-a", "node-b"])
ours = st.dictionaries(st.sampled_from(ORIGINS), amounts, max_size=3)
counts = st.tuples(st.just(OURS), ours) | st.tuples(
    st.just(OTHERS), st.dictionaries(st.just(("", "")), amounts)
)
writes = st.tuples(st.sampled_from("abcd"), st.none() | st.tuples(nodes, counts))


def plain_most(view: ClassView, slices: Collection[SliceView]) -> int:
    """By going through all slices."""
    per_node = {"": 0}
    for found in slices:
        if all(driver == found.driver for driver in view.drivers):
            devices = sum(n for origin, n in found.counts if selects(view, *origin))
            per_node[found.node] = per_node.get(found.node, 0) + devices
    anywhere = per_node.pop("")
    return min(MAX_RESULTS, anywhere + max(per_node.values(), default=0))


def selects(view: ClassView, configuration: str, instance: str) -> bool:
    if not view.configuration:
        return True
    return configuration == view.configuration and view.name in (configuration, instance)


@given(st.lists(writes, max_size=30))
def test_counting_each_slice_equals_going_through_all(
    history: list[tuple[str, tuple[str, tuple[str, dict[tuple[str, str], int]]] | None]],
) -> None:
    slices: dict[str, SliceView] = {}
    counted = DeviceCounts()
    for name, written in history:
        if name in slices:
            counted.add(slices.pop(name), -1)
        if written is not None:
            node, (driver, found) = written
            slices[name] = SliceView(
                name=name, driver=driver, node=node, counts=tuple(sorted(found.items()))
            )
            counted.add(slices[name])
        for view in CLASSES:
            assert counted.most(view) == plain_most(view, slices.values()), view
    for left in slices.values():
        counted.add(left, -1)
    assert kept_in(counted) == {}
