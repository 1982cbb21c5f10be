"""What entries of Queues count, and how amounts of it are written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.shapes.quantities import quantity_text, thousandths, unit_of
from scheduler_plugin.objects.amounts import UNLIMITED, Ceiling, ResourceKey
from scheduler_plugin.objects.measures import (
    Definition,
    Measure,
    amount_text,
    ceiling_text,
    is_measured,
)

MEMORY = Definition(name="gpu-memory", driver="gpu.example.com", measure=Measure(capacity="memory"))
H200 = Definition(name="h200", driver="gpu.example.com", selector="device.model == 'H200'")


def test_an_entry_of_a_class_alone_has_the_key_that_it_always_had() -> None:
    assert Definition(name="gpu", device_class="gpu").key == ResourceKey("gpu")


@pytest.mark.parametrize(
    "changes",
    [
        {"driver": "other.example.com"},
        {"selector": "true"},
        {"device_class": "gpu"},
        {"measure": Measure(capacity="cores")},
        {"measure": Measure(counter_set="gpu-*", counter="memory")},
        {"name": "memory"},
    ],
)
def test_entries_that_count_something_else_have_another_key(changes: dict[str, object]) -> None:
    assert replace(MEMORY, **changes).key != MEMORY.key  # type: ignore[arg-type]
    assert replace(MEMORY).key == MEMORY.key


def test_a_key_reads_as_the_name_of_its_entry() -> None:
    assert f"{MEMORY.key} {MEMORY.key!s:>12}" == "gpu-memory   gpu-memory"
    assert {MEMORY.key: 1}[replace(MEMORY).key] == 1


def test_only_quantities_are_counted_in_thousandths() -> None:
    assert is_measured(MEMORY.key)
    assert not is_measured(H200.key)
    assert not is_measured(ResourceKey("gpu"))


def test_amounts_and_ceilings_are_written_in_the_unit_of_their_entry() -> None:
    forty = 40 * 2**30 * 1000
    assert (amount_text(MEMORY.key, forty), amount_text(H200.key, 40)) == ("40Gi", "40")
    assert ceiling_text(MEMORY.key, Ceiling(forty)) == "40Gi"
    assert ceiling_text(MEMORY.key, UNLIMITED) == "none"


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (1, "1m"), (1500, "1500m"), (1000, "1"), (100 * 10**12, "100G"), (1024000, "1Ki")],
)
def test_quantities_are_written_as_kubernetes_writes_them(amount: int, text: str) -> None:
    assert quantity_text(amount) == text


@given(st.integers(min_value=0, max_value=2**80))
def test_a_written_quantity_is_read_as_the_same_amount(amount: int) -> None:
    assert thousandths(quantity_text(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "unit"),
    [
        (80 * 2**30 * 1000, ("Gi", 2**30)),
        (100 * 10**9 * 1000, ("G", 10**9)),
        (7000, ("", 1)),
        (1, ("", 1)),
        (0, ("", 1)),
    ],
)
def test_the_unit_of_an_amount_is_that_of_its_text(amount: int, unit: tuple[str, int]) -> None:
    assert unit_of(amount) == unit
