"""What entries of Queues count, as the checker reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.entries import Entry
from tests.chaos.quantities import amount

GPU = "gpu.example.com"
PART = {"driver": GPU, "consumedCapacity": {"memory": "20Gi"}}
WHOLE = {"driver": GPU}
DEVICE: dict[str, Any] = {
    "attributes": {"type": {"string": "gpu"}},
    "capacity": {"memory": {"value": "80Gi"}},
    "consumesCounters": [
        {"counterSet": "gpu-0", "counters": {"memory": {"value": "80Gi"}}},
        {"counterSet": "fan-0", "counters": {"memory": {"value": "1Gi"}}},
    ],
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (3, 3),
        ("-1", -1),
        ("20Gi", 20 * 2**30),
        ("1.5k", 1500),
        ("1953125Ki", 2 * 10**9),
        ("2e3", 2000),
        ("3000m", 3),
    ],
)
def test_a_quantity_is_whole_units(text: int | str, found: int) -> None:
    assert amount(text) == found


@pytest.mark.parametrize("text", ["", "Gi", "1.5", "500m", "1 Gi"])
def test_what_is_no_whole_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        amount(text)


def an_entry(**body: Any) -> Entry:
    return Entry.of({"name": "x", **body})


def test_a_capacity_is_what_the_allocation_says_else_what_the_device_has() -> None:
    memory = an_entry(driver=GPU, measure={"capacity": "memory"})
    assert memory.amount_of(PART, DEVICE) == 20 * 2**30
    assert memory.amount_of(WHOLE, DEVICE) == 80 * 2**30
    assert memory.amount_of(WHOLE, {}) == 0
    assert (memory.needs_device(PART), memory.needs_device(WHOLE)) == (False, True)


def test_a_counter_is_what_the_device_consumes_of_the_sets_that_are_meant() -> None:
    counted = an_entry(driver=GPU, measure={"counter": {"set": "gpu-*", "name": "memory"}})
    assert counted.amount_of(PART, DEVICE) == 80 * 2**30
    assert counted.needs_device(PART)


def test_an_entry_counts_devices_of_its_driver_or_class_that_its_selector_means() -> None:
    by_driver = an_entry(driver=GPU)
    assert by_driver.counts(WHOLE, "any", DEVICE)
    assert not by_driver.counts({"driver": "nic.example.com"}, "any", DEVICE)
    by_class = an_entry(deviceClass="fast", measure={"capacity": "memory"})
    assert by_class.counts(WHOLE, "fast", DEVICE)
    assert not by_class.counts(WHOLE, "any", DEVICE)


@pytest.mark.parametrize(("word", "found"), [("gpu", True), ("partition", False)])
def test_a_selector_compares_an_attribute(word: str, found: bool) -> None:
    selector = f'device.attributes["{GPU}"].type == "{word}"'
    entry = an_entry(driver=GPU, selector=selector)
    assert entry.counts(WHOLE, "any", DEVICE) is found
    assert not entry.counts(WHOLE, "any", {})
    assert entry.amount_of(PART, DEVICE) == 1


def test_a_selector_of_another_kind_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="does not read"):
        an_entry(driver=GPU, selector="true").counts(WHOLE, "any", DEVICE)


def test_only_an_entry_of_a_class_alone_is_a_class() -> None:
    assert Entry.of({"deviceClass": "echo", "quota": 1}).is_class
    assert not an_entry(deviceClass="echo", measure={"capacity": "memory"}).is_class
    assert not an_entry(driver=GPU).is_class
