"""What a DeviceTaintRule does."""

from __future__ import annotations

from tests.fakes.taint_rules import a_rule


def test_the_effect_none_only_informs() -> None:
    assert not a_rule(effect="None").repels


def test_its_text_has_the_taint_as_kubectl_writes_it_and_its_name() -> None:
    assert str(a_rule("disk-7")) == "example.com/repair:NoSchedule (DeviceTaintRule disk-7)"
