"""Which devices and slots DeviceTaintRules select."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import DRIVER_NAME
from driver.shapes.instance_taints import TaintRuleIndex, instance_pools
from kube.shapes.reading import read_as
from kube.shapes.taint_rules import DeviceTaintRule
from tests.fakes.taint_rules import a_rule

INSTANCE, CAPACITY = "camera-8120fe", 12

NO_SELECTOR = read_as(
    DeviceTaintRule,
    {"metadata": {"name": "none"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}},
)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"driver": "d"}, True),
        ({"driver": "d", "pool": "p", "device": "a"}, True),
        ({"driver": "e"}, False),
        ({"pool": "q"}, False),
        ({"driver": "d", "device": "b"}, False),
    ],
)
def test_all_fields_of_its_selector_must_match(selector: dict[str, str], selected: bool) -> None:
    assert bool(TaintRuleIndex([a_rule(**selector)]).selecting("d", "p", "a")) is selected


def test_a_rule_without_a_selector_selects_no_device() -> None:
    index = TaintRuleIndex([NO_SELECTOR])

    assert list(index) == [NO_SELECTOR]
    assert index.selecting("d", "p", "a") == []
    assert index.tainting(INSTANCE, ("p",), CAPACITY) == []


def matches(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """As `ruleMatchesDevice` of Kubernetes 1.37.2, in `pkg/controller/devicetainteviction`."""
    found = rule.selector
    if found is None:
        return False
    if found.driver is not None and found.driver != driver:
        return False
    if found.pool is not None and found.pool != pool:
        return False
    return found.device is None or found.device == device


DEVICES = [INSTANCE, *(f"{INSTANCE}-{slot}" for slot in range(CAPACITY)), "camera-a19705"]
STRANGE = [f"{INSTANCE}-01", f"{INSTANCE}-{CAPACITY}", f"{INSTANCE}-1-1", f"{INSTANCE}-", "-1", ""]
POOLS = ["node-a", "node-b", "local/node-a/camera", "shared/camera"]
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "driver": st.sampled_from([DRIVER_NAME, "gpu.example.com"]),
        "pool": st.sampled_from(POOLS),
        "device": st.sampled_from(DEVICES + STRANGE),
    },
)
RULES = st.lists(SELECTORS, max_size=8).map(
    lambda found: [NO_SELECTOR, *(a_rule(f"r-{i}", **each) for i, each in enumerate(found))]
)


@given(RULES, st.sampled_from(POOLS), st.sampled_from(DEVICES))
def test_rules_are_found_as_kubernetes_compares_them(
    rules: list[DeviceTaintRule], pool: str, device: str
) -> None:
    expected = {rule.name for rule in rules if matches(rule, DRIVER_NAME, pool, device)}

    found = [rule.name for rule in TaintRuleIndex(rules).selecting(DRIVER_NAME, pool, device)]

    assert (set(found), found) == (expected, sorted(found))


@given(RULES, st.booleans())
def test_slots_are_tainted_by_the_rules_that_select_a_device_of_these_names(
    rules: list[DeviceTaintRule], shared: bool
) -> None:
    pools = instance_pools("camera", ("node-a",), is_shared=shared)
    expected = {
        (rule.name, slot)
        for rule in rules
        for slot in range(CAPACITY)
        for pool in pools
        for device in (INSTANCE, f"{INSTANCE}-{slot}")
        if matches(rule, DRIVER_NAME, pool, device)
    }

    found = TaintRuleIndex(rules).tainting(INSTANCE, pools, CAPACITY)

    assert {(rule.name, slot) for rule, slots in found for slot in slots} == expected
    assert len(found) == len({rule.name for rule, _ in found})


def test_a_device_that_no_node_sees_is_selected_by_rules_that_name_no_pool() -> None:
    index = TaintRuleIndex([a_rule("all"), a_rule("one", pool="node-a")])
    pools = instance_pools("camera", (), is_shared=False)

    assert [rule.name for rule, _ in index.tainting(INSTANCE, pools, CAPACITY)] == ["all"]
