"""What `check` says of entries by driver, selector and measure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.checking.findings import findings_of
from scheduler_plugin.checking.selector_processes import invalid_selectors
from scheduler_plugin.checking.setups import Finding, Level, Setup
from tests.scheduler_plugin.builders import a_class_object
from tests.scheduler_plugin.checking.test_findings import policy, whole, without

DRIVER = "gpu.example.com"
MEMORY = {"name": "memory", "driver": DRIVER, "measure": {"capacity": "memory"}}
MIG = {"name": "mig", "driver": DRIVER, "measure": {"counter": {"set": "gpu-*", "name": "memory"}}}
DEVICE = {
    "name": "gpu-0",
    "capacity": {"memory": {"value": "80Gi"}},
    "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
}


def queue_of(name: str, *entries: Any, **spec: Any) -> Any:
    spec = {"namespaceSelector": {}, "resources": list(entries), **spec}
    return {"metadata": {"name": name}, "spec": spec}


def gpus(*devices: Any) -> Any:
    spec = {"driver": DRIVER, "pool": {"name": "n"}, "nodeName": "n", "devices": list(devices)}
    return {"metadata": {"name": "gpus"}, "spec": spec}


def setup_of(*queues: Any, guarded: bool = True, **fields: Any) -> Setup:
    others = without(whole().policies, "moorage-allocations")
    allocations = policy("moorage-allocations", *([DRIVER] if guarded else []))
    fields = {"slices": (gpus(DEVICE),), "policies": (*others, allocations), **fields}
    return replace(whole(), queues=queues, **fields)


def flaws(setup: Setup) -> list[Finding]:
    return [found for found in findings_of(setup) if found.level is not Level.OK]


def test_entries_that_count_something_are_fine() -> None:
    setup = setup_of(queue_of("all", MEMORY, MIG), queue_of("a", MEMORY, parent="all"))

    assert flaws(setup) == []
    said = [(found.part, found.said) for found in findings_of(setup)]
    assert ("entries", "All entries of Queues are understood.") in said
    assert (
        "drivers",
        f"Other schedulers cannot allocate devices of moorage.dev, {DRIVER}.",
    ) in said


def test_a_driver_that_the_policy_does_not_guard_is_told_with_what_to_set() -> None:
    (found,) = flaws(setup_of(queue_of("a", MEMORY), guarded=False))

    assert (found.level, found.part) == (Level.WARNING, "drivers")
    assert found.said == (
        f'Queue a: Entry "memory" counts devices of driver {DRIVER}: other schedulers may allocate'
        f" them uncharged. Set accounting.drivers: [moorage.dev, {DRIVER}]."
    )
    assert "helm upgrade" in found.mend


def test_a_class_of_a_driver_that_the_policy_does_not_guard_is_told_for_a_measure_too() -> None:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    a_class = a_class_object("gpu", spec={"selectors": [selector]})
    entry = {"name": "m", "deviceClass": "gpu", "measure": {"capacity": "memory"}}

    (found,) = flaws(setup_of(queue_of("a", entry), guarded=False, classes=(a_class,)))

    assert found.said.startswith(f'Queue a: DeviceClass "gpu" is of driver {DRIVER}: ')


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({**MEMORY, "share": 2}, "spec.resources[1]: Object contains unknown field `share`."),
        (
            {**MEMORY, "measure": {"expression": "1"}},
            "spec.resources[1].measure: Object contains unknown field `expression`.",
        ),
        (
            {**MEMORY, "measure": {}},
            "spec.resources[1].measure: Exactly one of capacity and counter must be set.",
        ),
        (
            {"name": "x", "quota": 3},
            "spec.resources[1].deviceClass: Exactly one of deviceClass and driver must be set.",
        ),
        ({**MEMORY, "quota": "50%"}, "spec.resources[1].quota: '50%' is not a quantity."),
    ],
)
def test_an_entry_of_another_version_is_an_error(entry: Any, said: str) -> None:
    """The plugin is not ready then, so no pod with accounted devices is bound."""
    found = flaws(setup_of(queue_of("a", MIG, entry)))

    assert [(f.level, f.part, f.said) for f in found] == [
        (Level.ERROR, "entries", f"Queue a: {said}")
    ]


def test_what_the_webhook_would_refuse_is_told_if_it_exists() -> None:
    other = {**MEMORY, "measure": {"capacity": "vram"}}
    vram = {**DEVICE, "capacity": {"vram": {"value": "1"}, "memory": {"value": "1"}}}
    queues = [
        queue_of("all", MEMORY),
        queue_of("a", parent="all"),
        queue_of("b", other, parent="a"),
        queue_of("elsewhere", other),
        queue_of("c", {**MIG, "quota": "2Gi", "limit": "1Gi"}),
    ]

    found = flaws(setup_of(*queues, slices=(gpus(vram, DEVICE),)))

    assert [(f.level, f.said) for f in found] == [
        (
            Level.WARNING,
            "Queue c: spec.resources[0].limit: The limit 1Gi is below the quota 2Gi.",
        ),
        (
            Level.WARNING,
            f'Entry "memory" counts capacity memory of driver {DRIVER} in queue "all", and capacity'
            f' vram of driver {DRIVER} in queue "b" of the same tree: give one of them another'
            " name.",
        ),
    ]


@pytest.mark.parametrize(
    ("entry", "said", "mend"),
    [
        (
            {**MEMORY, "measure": {"capacity": "vram"}},
            f"counts capacity vram, which no published device of driver {DRIVER} has.",
            "The devices have: capacity memory.",
        ),
        (
            {**MIG, "measure": {"counter": {"set": "mig-*", "name": "memory"}}},
            f"counts counter memory of mig-*, which no published device of driver {DRIVER} has.",
            "The devices have: counter memory of gpu-0.",
        ),
        (
            {**MEMORY, "driver": "nic.example.com"},
            "counts capacity memory, and no device of driver nic.example.com is published.",
            "",
        ),
    ],
)
def test_a_measure_that_no_device_has_is_told_by_name(entry: Any, said: str, mend: str) -> None:
    (found, *_) = flaws(setup_of(queue_of("a", entry)))

    assert (found.level, found.part) == (Level.WARNING, "entries")
    assert found.said == f'Queue a: Entry "{entry["name"]}" {said}'
    assert found.mend == mend


async def test_a_selector_that_is_no_cel_is_told() -> None:
    valid, invalid = 'device.attributes["gpu.example.com"].model == "H200"', "device.driver =="
    entries = [
        {"name": name, "driver": DRIVER, "selector": text}
        for name, text in (("one", valid), ("two", invalid))
    ]
    broken = await invalid_selectors([valid, invalid])

    (found,) = flaws(setup_of(queue_of("a", *entries), invalid_selectors=broken))

    assert found.level is Level.WARNING
    assert found.said == (
        'Queue a: Entry "two" has a selector that is no valid CEL, so it counts all devices:'
        " device.driver =="
    )
