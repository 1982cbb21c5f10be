"""Which devices a DeviceTaintRule selects."""

from __future__ import annotations

import pytest

from kube.shapes.reading import read_as
from kube.shapes.taint_rules import DeviceTaintRule
from tests.fakes.taint_rules import a_rule


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
    assert a_rule(**selector).selects("d", "p", "a") is selected


def test_a_rule_without_a_selector_selects_no_device() -> None:
    rule = read_as(
        DeviceTaintRule,
        {"metadata": {"name": "x"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}},
    )

    assert not rule.selects("d", "p", "a")
    assert rule.repels


def test_the_effect_none_only_informs() -> None:
    assert not a_rule(effect="None").repels


def test_its_text_has_the_taint_as_kubectl_writes_it_and_its_name() -> None:
    assert str(a_rule("disk-7")) == "example.com/repair:NoSchedule (DeviceTaintRule disk-7)"
