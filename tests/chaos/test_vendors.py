"""The hardware of the trials, and what queues list of it."""

from __future__ import annotations

import pytest

from tests.chaos import vendors
from tests.chaos.entries import Entry, name_of
from tests.chaos.objects import Object
from tests.chaos.quantities import amount
from tests.chaos.vendor_supply import AND
from tests.chaos.vendors import ENTRIES, GPUS, HARDWARE, NICS, REQUESTS


def names(driver: str, *hardware: str) -> list[str]:
    found = vendors.slices(driver, hardware)
    return [device["name"] for each in found for device in each.get("devices", ())]


def test_hardware_that_is_gone_is_not_published() -> None:
    assert names(GPUS, "gpu-1") == ["gpu-1"]
    assert names(GPUS, "mig-0")[0] == "mig-0"
    assert names(NICS, "nic-0") == ["nic-0"]
    assert names(NICS) == names(GPUS) == []


def test_what_claims_divide_consumes_counters_and_so_do_partitions() -> None:
    (switch, cards) = vendors.slices(NICS, HARDWARE[NICS])
    assert switch["sharedCounters"][0]["name"] == "switch-0"
    assert all(each["allowMultipleAllocations"] for each in cards["devices"])
    assert all(each["consumesCounters"] for each in cards["devices"])


@pytest.mark.parametrize(
    ("name", "steps", "found"),
    [
        ("gpu-memory", 3, "60Gi"),
        ("link", 2, "20G"),
        ("ports", 2, "2"),
        ("partitions", 2, 2),
        ("link", -1, -1),
    ],
)
def test_a_quota_is_so_many_steps(name: str, steps: int, found: int | str) -> None:
    assert vendors.amount(name, steps) == found


def test_a_name_means_the_same_in_all_queues() -> None:
    bodies = [body for each in ENTRIES.values() for body in each]
    assert len({Entry.of(body) for body in bodies}) == len({name_of(body) for body in bodies})


def test_the_root_lists_what_its_children_do() -> None:
    """So the notes of their claims say everything that a status of its tree tells."""
    listed = {name_of(body) for body in ENTRIES["org"]}
    assert {name_of(body) for leaf in ("red", "blue") for body in ENTRIES[leaf]} <= listed


def test_the_checker_reads_all_quantities_and_selectors() -> None:
    device: Object = {"attributes": {}}
    for bodies in ENTRIES.values():
        for body in bodies:
            amount(body.get("quota", 0))
            amount(body.get("limit", -1))
            Entry.of(body).counts({"driver": GPUS}, GPUS, device)
    for request in (r for each in REQUESTS.values() for r in each):
        for choice in request.get("firstAvailable", [request.get("exactly")]):
            for selector in choice.get("selectors", ()):
                for part in selector["cel"]["expression"].split(AND):
                    entry = Entry.of({"name": "x", "driver": GPUS, "selector": part})
                    assert not entry.counts({"driver": GPUS}, GPUS, device)
