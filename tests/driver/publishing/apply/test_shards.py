"""Placement of devices in slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    Scope,
    SliceContent,
    hostnames,
    slice_device,
)
from driver.publishing.apply.shards import DeviceGroup, place

ALL, A, B = AllNodesScope(), hostnames(frozenset({"a"})), hostnames(frozenset({"b"}))


def group(names: Iterable[str], scope: Scope = ALL) -> DeviceGroup:
    return DeviceGroup(scope, tuple(slice_device({"name": name}) for name in names))


def stored(*slices: Iterable[str], scope: Scope | None = ALL) -> dict[int, SliceContent]:
    return {index: SliceContent(scope, group(names).devices) for index, names in enumerate(slices)}


def run(start: int, count: int) -> list[str]:
    return [f"d{number:04}" for number in range(start, start + count)]


def placed(
    *groups: DeviceGroup, stored: Mapping[int, SliceContent] | None = None
) -> list[list[str]]:
    return [[d.name for d in content.devices] for content in place(groups, stored or {})]


def test_nothing_is_one_empty_slice_of_the_first_scope() -> None:
    assert place((group([], A), group([], B)), {}) == (SliceContent(A),)


def test_a_device_stays_in_its_slice_and_within_it_in_the_order_of_the_pool() -> None:
    before = stored(["b", "a"], ["c"])

    assert placed(group(["c", "a", "b"]), stored=before) == [["a", "b"], ["c"]]


def test_new_devices_fill_the_first_slice_with_room() -> None:
    before = stored(run(0, 64), run(64, 62), run(200, 1))

    after = placed(group([*run(0, 130), *run(200, 1)]), stored=before)

    assert after == [run(0, 64), run(64, 64), [*run(128, 2), *run(200, 1)]]


def test_a_slice_that_became_empty_stays_as_it_was() -> None:
    after = place((group(run(64, 64), A),), stored(run(0, 64), run(64, 64), scope=B))

    assert [content.scope for content in after] == [B, A]
    assert not after[0].devices


def test_an_empty_slice_is_used_before_one_is_added() -> None:
    after = placed(group([*run(0, 64), "new"]), stored=stored([], run(0, 64)))

    assert after == [["new"], run(0, 64)]


def test_slices_go_when_the_pool_has_more_than_twice_as_many_as_it_needs() -> None:
    two, three = stored(["a"], ["b"]), stored(["a"], ["b"], ["c"])

    assert placed(group("ab"), stored=two) == [["a"], ["b"]]
    assert placed(group("abc"), stored=three) == [["a", "b", "c"]]


def test_slices_go_when_one_is_missing_anyway() -> None:
    before = stored(["a"], ["b"])
    del before[0]

    assert placed(group("ab"), stored=before) == [["a", "b"]]


def test_a_missing_slice_takes_in_what_has_no_place() -> None:
    before = stored(run(0, 64), run(64, 64), run(128, 64))
    del before[1]

    assert placed(group(run(0, 192)), stored=before) == [
        run(0, 64),
        run(64, 64),
        run(128, 64),
    ]


def test_a_slice_of_more_than_64_devices_is_divided_at_once() -> None:
    assert placed(group(run(0, 128)), stored=stored(run(0, 128))) == [run(0, 64), run(64, 64)]


def test_a_device_that_is_stored_twice_stays_in_the_first_slice() -> None:
    assert placed(group("ab"), stored=stored("ab", "a")) == [["a", "b"], []]


def test_each_scope_has_slices_of_its_own() -> None:
    after = place((group(run(0, 65), A), group(run(65, 1), B)), {})

    assert [(content.scope, len(content.devices)) for content in after] == [(A, 64), (A, 1), (B, 1)]


def test_a_slice_takes_the_scope_that_most_of_its_devices_have_now() -> None:
    after = place((group("x", B), group("abc", A)), stored("abcx"))

    assert [content.scope for content in after] == [A, B]
    assert [len(content.devices) for content in after] == [3, 1]


def test_a_far_index_costs_nothing() -> None:
    before = {0xFFFFF: SliceContent(ALL, group("a").devices)}

    assert placed(group("a"), stored=before) == [["a"]]
