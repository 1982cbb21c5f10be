"""What the checker finds of slots: each has one holder, who uses it."""

from __future__ import annotations

from tests.chaos import made
from tests.chaos.node_reports import Listed, NodeReport
from tests.chaos.objects import Object
from tests.chaos.slot_rules import slot_findings

SLOT = "echo-abc123-0"


def instance(**usage: str) -> Object:
    named = {name.replace("_", "-"): holder for name, holder in usage.items()}
    spec = {"configurationName": "echo", "deviceUsage": named}
    return {"kind": "Instance", "metadata": {"name": "echo-abc123"}, "spec": spec}


def report(**devices: tuple[str, ...]) -> NodeReport:
    """Resources without their prefix, to virtual devices."""
    found = {f"akri.sh/{name.replace('_', '-')}": names for name, names in devices.items()}
    return NodeReport("a", (Listed(("lab", "p"), "main", found, ()),), {}, (), {})


def rules(said: NodeReport, usage: Object) -> set[str]:
    return {finding.rule for finding in slot_findings([said], made.snapshot(usage))}


def test_a_slot_of_an_instance_is_in_order() -> None:
    assert rules(report(echo_abc123=(SLOT,)), instance(echo_abc123_0="a")) == set()


def test_a_use_of_any_device_is_in_order() -> None:
    assert rules(report(echo=("3",)), instance(echo_abc123_0="C:3:a")) == set()


def test_a_slot_that_nobody_uses_is_found() -> None:
    assert rules(report(), instance(echo_abc123_0="a")) == {"slot-of-nobody"}
    assert rules(report(), instance(echo_abc123_0="C:3:a")) == {"slot-of-nobody"}


def test_a_use_that_nobody_holds_is_found() -> None:
    assert rules(report(echo_abc123=(SLOT,)), instance(echo_abc123_0="b")) == {"not-held"}
    assert rules(report(echo=("3",)), instance()) == {"not-held"}


def test_a_use_that_is_held_twice_is_found() -> None:
    twice = instance(echo_abc123_0="C:3:a", echo_abc123_1="C:3:a")
    assert rules(report(echo=("3",)), twice) == {"held-twice"}


def test_a_kubelet_that_does_not_answer_is_left_out() -> None:
    silent = NodeReport("a", None, {}, (), {})
    assert rules(silent, instance(echo_abc123_0="a")) == set()
