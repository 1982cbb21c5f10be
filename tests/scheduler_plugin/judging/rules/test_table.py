"""Each reason is one rule, asked in the order of the reasons."""

from __future__ import annotations

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.cases import case_of
from scheduler_plugin.judging.named_holders import anyone
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.judging.rules.table import BY_REASON, POD_GROUP_INCOMPLETE, RULES
from scheduler_plugin.objects.names import Reason
from tests.scheduler_plugin.builders import a_claim, a_pod, a_queue, a_world, refusal

ORDER = [reason for reason in Reason if reason is not Reason.POD_GROUP_INCOMPLETE]


def unknown_and_gone() -> World:
    """The pod names a claim that is gone, then one that is not known, then one that goes."""
    terminating = a_claim("going", deleted="2026-11-21T12:00:00Z")
    pod = a_pod("p", queue="vision", claims=("former", "later", "going"))
    world = a_world(a_queue(onvif=(1, 1)), terminating, pod)
    world.note_gone_claim("default", "former")
    return world


def test_each_reason_has_one_rule_and_they_are_asked_in_this_order() -> None:
    assert [rule.reason for rule in RULES] == ORDER
    assert BY_REASON.keys() == set(Reason)
    assert BY_REASON[Reason.POD_GROUP_INCOMPLETE] is POD_GROUP_INCOMPLETE


def test_the_first_rule_that_refuses_is_the_reason_whatever_the_pod_names_first() -> None:
    world = unknown_and_gone()
    pod = world.facts.pod_named("default", "p")
    assert pod is not None

    found = refusal(world, pod)

    assert found.reason is Reason.NOT_KNOWN_YET
    assert "ResourceClaim default/later" in found.sentence


def test_a_rule_on_what_is_named_refuses_once_for_each_name() -> None:
    world = unknown_and_gone()
    pod = world.facts.pod_named("default", "p")
    assert pod is not None
    case = case_of(pod, world.facts.claims_of(pod), world, at_bind=False)
    not_found = BY_REASON[Reason.CLAIM_NOT_FOUND]

    assert list(not_found.refusals(case)) == [
        "ResourceClaim default/former, which Pod default/p names, does not exist.",
        "ResourceClaim default/going, which Pod default/p names, is being deleted.",
    ]
    assert list(not_found.remedies(case, anyone))[:2] == [
        "Create ResourceClaim default/former.",
        "Create ResourceClaim default/going again once it is deleted, which is when no pod uses"
        " it.",
    ]
    assert list(BY_REASON[Reason.NOT_KNOWN_YET].remedies(case, anyone)) == [
        "Create ResourceClaim default/later."
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.reason))
def test_a_rule_says_either_why_it_refuses_or_why_it_passes(rule: Rule) -> None:
    pod = a_pod("p", queue="vision", claims=("cam",))
    world = a_world(a_queue(onvif=(1, 1)), a_claim(), pod)
    case = case_of(pod, world.facts.claims_of(pod), world, at_bind=False)

    assert list(rule.refusals(case)) == []
    assert rule.why_satisfied(case)


@pytest.mark.parametrize("rule", BY_REASON.values(), ids=lambda rule: str(rule.reason))
def test_what_a_rule_means_stands_in_one_cell_of_a_table(rule: Rule) -> None:
    assert rule.meaning.endswith(".")
    assert "\n" not in rule.meaning
    assert "  " not in rule.meaning
