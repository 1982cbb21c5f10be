"""Queues: what is refused, what is merely odd, and what may not go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.objects.api import InstanceView, ResourceKey
from scheduler_plugin.objects.names import AccountingSettings
from tests.scheduler_plugin.builders import (
    a_claim,
    a_queue,
    a_queue_object,
    a_result,
    our_class,
    their_class,
)
from tests.webhook.builders import a_review, rule_context
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.queues import judge_deleted, judge_written
from webhook.rules.rule_context import RuleContext


def written(new: Any, context: RuleContext, old: Any = None) -> Findings:
    return judge_written(a_review("Queue", new, old), context)


def created(context: RuleContext, name: str = "vision", **spec: Any) -> Findings:
    return written(a_queue_object(name, **spec), context)


def deleted(context: RuleContext, *owned: Any, name: str = "vision") -> Findings:
    return judge_deleted(a_review("Queue", old=a_queue_object(name)), owned, context)


def messages(found: Findings) -> list[str]:
    return [str(problem) for problem in found.problems]


def test_a_queue_under_a_parent_that_exists_is_admitted() -> None:
    context = rule_context(a_queue("research", onvif=(8, 8)))

    assert created(context, parent="research", onvif=(4, 8)) == NOTHING_FOUND


def test_all_that_is_wrong_with_the_object_is_said_at_once_and_the_cycle_too() -> None:
    context = rule_context(a_queue("child", parent="vision"))
    resources = [{"deviceClass": "onvif", "quota": 5, "limit": 4}]

    found = created(
        context, parent="child", resources=resources, claimSharing={"policy": "Sometimes"}
    )

    assert [p.path for p in found.problems] == [
        "spec.claimSharing.policy",
        "spec.resources[0].limit",
        "spec.parent",
    ]


def test_a_parent_may_come_later() -> None:
    found = created(rule_context(), parent="research")

    assert found == Findings(warnings=('spec.parent: Queue "research" does not exist (yet).',))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_cycle_of_any_length_is_refused(length: int) -> None:
    chain = [a_queue(f"q{n}", parent=f"q{n - 1}" if n else "vision") for n in range(length)]

    (problem,) = created(rule_context(*chain), parent=f"q{length - 1}").problems

    names = ["vision", *(f"q{n}" for n in reversed(range(length))), "vision"]
    assert str(problem) == f"spec.parent: {' -> '.join(names)} is a cycle. Name another parent."


def test_a_queue_is_not_its_own_parent() -> None:
    assert messages(created(rule_context(), parent="vision")) == [
        "spec.parent: A queue cannot be its own parent."
    ]


def test_a_queue_moves_to_another_parent() -> None:
    old = a_queue_object("vision", parent="a")
    context = rule_context(a_queue("a"), a_queue("b"), a_queue("vision", parent="a"))

    assert written(a_queue_object("vision", parent="b"), context, old) == NOTHING_FOUND


def test_a_move_below_itself_is_refused() -> None:
    context = rule_context(a_queue("vision"), a_queue("child", parent="vision"))

    found = written(a_queue_object("vision", parent="child"), context, a_queue_object("vision"))

    assert messages(found) == [
        "spec.parent: vision -> child -> vision is a cycle. Name another parent."
    ]


def test_a_cycle_that_is_there_hinders_no_other_change() -> None:
    """Two replicas may each have seen one half of it."""
    context = rule_context(a_queue("vision", parent="b"), a_queue("b", parent="vision"))
    old = a_queue_object("vision", parent="b")

    found = written(a_queue_object("vision", parent="b", onvif=(1, 1)), context, old)

    assert found.problems == ()
    assert found.warnings == (
        "spec.parent: vision -> b -> vision is a cycle. Name another parent.",
    )


def test_a_cycle_above_is_not_this_queues_problem() -> None:
    context = rule_context(a_queue("a", parent="b"), a_queue("b", parent="a"))

    assert created(context, parent="a") == NOTHING_FOUND


def test_an_update_that_leaves_the_spec_alone_passes_whatever_it_says() -> None:
    """A rule may be younger than the object; finalizers must come off all the same."""
    broken = a_queue_object("vision", parent="vision")
    labelled = {**broken, "metadata": {**broken["metadata"], "labels": {"a": "b"}}}

    assert written(labelled, rule_context(), broken) == NOTHING_FOUND


def test_a_queue_that_is_leaving_passes() -> None:
    body = a_queue_object("vision", parent="vision")
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert written(body, rule_context(), a_queue_object("vision")) == NOTHING_FOUND


MEMORY: dict[str, Any] = {
    "name": "memory",
    "driver": "gpu.example.com",
    "measure": {"capacity": "memory"},
}
OTHER = {**MEMORY, "measure": {"capacity": "vram"}}


@pytest.mark.parametrize("place", ["root", "sibling", "child"])
def test_a_name_that_counts_something_else_in_the_tree_is_refused(place: str) -> None:
    parents = {"root": "", "sibling": "root", "child": "vision"}
    queues = [
        a_queue(name, parent=parent, resources=[OTHER] if name == place else [])
        for name, parent in parents.items()
    ]

    (message,) = messages(created(rule_context(*queues), parent="root", resources=[MEMORY]))

    assert message == (
        'spec.resources[0]: Entry "memory" counts capacity memory of driver gpu.example.com, and'
        f' that of queue "{place}", in the same tree, counts capacity vram of driver'
        " gpu.example.com. Give one of them another name."
    )


def test_a_name_may_count_something_else_in_another_tree() -> None:
    context = rule_context(a_queue("elsewhere", resources=[OTHER]), a_queue("root"))

    assert messages(created(context, parent="root", resources=[MEMORY])) == []


def test_a_queue_does_not_bring_a_child_whose_names_count_something_else() -> None:
    context = rule_context(
        a_queue("root", resources=[OTHER]),
        a_queue("vision"),
        a_queue("child", parent="vision", resources=[MEMORY]),
    )

    (message,) = messages(created(context, parent="root"))

    assert message.startswith(
        'spec.parent: Of queue "child": Entry "memory" counts capacity memory'
    )


def test_a_class_that_nobody_knows_is_odd() -> None:
    context = rule_context("usb", *devices(1))

    found = created(context, onvif=(1, 1), usb=(1, 1), onfiv=(1, 1))

    assert found.problems == ()
    assert found.warnings == (
        'spec.resources[2].deviceClass: There is no DeviceClass or Configuration "onfiv" (yet).',
    )


def test_a_class_that_is_counted_under_another_name_is_odd() -> None:
    context = rule_context(our_class("onvif-8a2b3c", configuration="onvif"))
    resources = [{"deviceClass": "onvif-8a2b3c", "quota": 1}]

    assert created(context, resources=resources).warnings == (
        'spec.resources[0].deviceClass: Uses of "onvif-8a2b3c" are counted under "onvif":'
        ' list "onvif" instead.',
    )


def test_a_class_of_somebody_elses_that_selects_our_devices_is_odd() -> None:
    ours = 'device.driver == "moorage.dev"'
    onvif = f'{ours} && device.attributes["moorage.dev"].configuration == "onvif"'
    context = rule_context(their_class("cams", onvif), their_class("any", ours))
    resources = [{"deviceClass": "cams", "quota": 1}, {"deviceClass": "any", "quota": 1}]

    assert created(context, resources=resources).warnings == (
        'spec.resources[0].deviceClass: Uses of "cams" are counted under "onvif": list'
        ' "onvif" instead.',
        'spec.resources[1].deviceClass: Uses of "any" are counted under the Configuration of each'
        " device: list the Configurations instead.",
    )


def test_a_class_of_a_driver_that_no_policy_guards_is_odd() -> None:
    gpu = their_class("gpu", 'device.driver == "gpu.example.com"')
    context = rule_context(gpu, their_class("any", "true"))
    resources = [{"deviceClass": "gpu", "quota": 1}, {"deviceClass": "any", "quota": 1}]

    assert created(context, resources=resources).warnings == (
        'spec.resources[0].deviceClass: DeviceClass "gpu" is of driver gpu.example.com: other'
        " schedulers may allocate its devices uncharged. Set accounting.drivers:"
        " [moorage.dev, gpu.example.com].",
        'spec.resources[1].deviceClass: DeviceClass "any" is of a driver not known: other'
        " schedulers may allocate its devices uncharged unless it is moorage.dev. Set"
        " accounting.drivers to name it, too.",
    )
    settings = AccountingSettings(accounted_drivers=("moorage.dev", "gpu.example.com"))
    told = replace(context, settings=settings)
    assert created(told, resources=resources[:1]) == NOTHING_FOUND


def test_an_entry_by_driver_is_odd_only_if_no_policy_guards_the_driver() -> None:
    context = rule_context()

    assert created(context, resources=[MEMORY]).warnings == (
        'spec.resources[0].driver: Entry "memory" counts devices of driver gpu.example.com: other'
        " schedulers may allocate them uncharged. Set accounting.drivers:"
        " [moorage.dev, gpu.example.com].",
    )
    settings = AccountingSettings(accounted_drivers=("moorage.dev", "gpu.example.com"))
    assert created(replace(context, settings=settings), resources=[MEMORY]) == NOTHING_FOUND


def test_an_entry_of_a_class_by_measure_is_odd_if_nobody_knows_the_class() -> None:
    entry = {"name": "memory", "deviceClass": "gpu", "measure": {"capacity": "memory"}}

    assert created(rule_context(), resources=[entry]).warnings == (
        'spec.resources[0].deviceClass: There is no DeviceClass or Configuration "gpu" (yet).',
    )


def test_an_unknown_field_of_an_entry_is_refused_with_its_path() -> None:
    measure = {"capacity": "memory", "per": "node"}

    (message,) = messages(created(rule_context(), resources=[{**MEMORY, "measure": measure}]))

    assert message.startswith("spec.resources[0].measure.per: ")


def test_quotas_of_measures_beyond_the_parents_are_told_as_quantities() -> None:
    settings = AccountingSettings(accounted_drivers=("moorage.dev", "gpu.example.com"))
    context = rule_context(
        a_queue("research", resources=[{**MEMORY, "quota": "80Gi"}]),
        a_queue("robots", parent="research", resources=[{**MEMORY, "quota": "40Gi"}]),
    )
    resources = [{**MEMORY, "quota": "60Gi"}]

    assert created(
        replace(context, settings=settings), parent="research", resources=resources
    ).warnings == (
        'spec.resources[0].quota: The children of queue "research" have quotas of 100Gi memory in'
        " total, more than its own 80Gi.",
    )


def test_quotas_of_siblings_within_the_parents_are_fine() -> None:
    context = rule_context(
        a_queue("research", onvif=(8, -1)), a_queue("robots", parent="research", onvif=(4, -1))
    )

    assert created(context, parent="research", onvif=(4, -1)) == NOTHING_FOUND


def test_quotas_of_siblings_beyond_the_parents_are_odd() -> None:
    context = rule_context(
        a_queue("research", onvif=(8, -1)),
        a_queue("robots", parent="research", onvif=(4, -1)),
        a_queue("vision", parent="research", onvif=(1, -1)),
    )

    assert created(context, parent="research", onvif=(5, -1)).warnings == (
        'spec.resources[0].quota: The children of queue "research" have quotas of 9 onvif in'
        " total, more than its own 8.",
    )


def test_a_quota_of_minus_one_counts_as_the_limit() -> None:
    context = rule_context(a_queue("research", onvif=(4, 8)), a_queue("a", onvif=(1, 1)))

    fine = created(context, parent="research", onvif=(-1, 4))
    (warning,) = created(context, parent="research", onvif=(-1, 5)).warnings

    assert fine == NOTHING_FOUND
    assert "have quotas of 5 onvif in total, more than its own 4." in warning


def test_a_parent_that_lowers_its_quota_below_its_childrens_is_odd() -> None:
    context = rule_context(a_queue("robots", parent="vision", onvif=(4, -1)))

    assert created(context, onvif=(4, -1)) == NOTHING_FOUND
    (warning,) = created(context, onvif=(3, -1)).warnings
    assert warning.startswith('spec.resources[0].quota: The children of queue "vision"')


def test_a_child_without_an_end_is_odd_under_a_parent_with_one() -> None:
    context = rule_context(a_queue("research", onvif=(8, -1)))

    (warning,) = created(context, parent="research", onvif=(-1, -1)).warnings

    assert "has an unlimited quota" in warning


def test_a_parent_without_an_end_or_without_the_class_bounds_nothing() -> None:
    for parent in (a_queue("research", onvif=(-1, -1)), a_queue("research", usb=(1, 1))):
        context = rule_context(parent, "usb")

        assert created(context, parent="research", onvif=(-1, -1)) == NOTHING_FOUND


def test_numbers_as_large_as_the_api_has_them_add_up() -> None:
    largest = 2**63 - 1
    context = rule_context(
        a_queue("research", onvif=(largest, -1)),
        a_queue("robots", parent="research", onvif=(largest, -1)),
    )

    (warning,) = created(context, parent="research", onvif=(largest, -1)).warnings

    assert str(2 * largest) in warning


def test_a_queue_that_owns_nothing_may_go() -> None:
    waiting = a_claim("waiting", queue="vision")

    assert deleted(rule_context(a_queue("vision")), waiting) == NOTHING_FOUND


def test_a_queue_with_children_stays() -> None:
    children = [a_queue(f"child-{n}", parent="vision") for n in range(7)]

    assert messages(deleted(rule_context(a_queue("vision"), *children))) == [
        'metadata.name: Queue "vision" has 7 children:'
        " child-0, child-1, child-2, child-3, child-4 and 2 more."
        " Delete them first, or give them another parent."
    ]


def test_a_queue_that_owns_allocated_claims_stays_and_says_which() -> None:
    owned = [a_claim(f"cam-{n}", queue="vision", results=[a_result()]) for n in range(3)]

    assert messages(deleted(rule_context(a_queue("vision")), *owned)) == [
        'metadata.name: Queue "vision" owns 3 allocated claims:'
        " default/cam-0, default/cam-1, default/cam-2."
        " Delete their pods first, and wait until the claims are deallocated."
    ]


def test_a_queue_that_is_charged_otherwise_stays_and_says_so() -> None:
    body = a_queue_object("vision")
    body["metadata"]["finalizers"] = ["moorage.dev/charges"]

    found = judge_deleted(a_review("Queue", old=body), (), rule_context(a_queue("vision")))

    assert found.problems == ()
    assert found.warnings == (
        'metadata.finalizers: Queue "vision" is charged, or was a moment ago: it admits no pods'
        " from now on, and is removed when its pods have ended.",
    )


# Whom it shares its claims with.


def sharing(*names: str) -> dict[str, Any]:
    return {"claimSharing": {"policy": "Deny", "queues": list(names)}}


def test_a_queue_that_claims_are_shared_with_may_come_later() -> None:
    context = rule_context(a_queue("robots"))

    assert created(context, **sharing("robots", "vision")) == NOTHING_FOUND
    assert created(context, **sharing("robots", "robbots")).warnings == (
        'spec.claimSharing.queues: Queue "robbots" does not exist (yet).',
    )


def test_of_many_queues_that_do_not_exist_some_are_named_in_one_sentence() -> None:
    names = [f"q{number}" for number in range(7)]

    assert created(rule_context(), **sharing(*names)).warnings == (
        "spec.claimSharing.queues: 7 Queues do not exist (yet): q0, q1, q2, q3, q4 and 2 more.",
    )


# Quotas of more than there is.


def devices(*capacities: int, configuration: str = "usb") -> list[InstanceView]:
    return [
        InstanceView(f"{configuration}-{number}", ResourceKey(configuration), (), capacity)
        for number, capacity in enumerate(capacities)
    ]


@pytest.mark.parametrize(
    ("quota", "capacities", "said"),
    [
        (4, (1, 3), ()),
        (5, (1, 3), ("5 is more than the 4 uses of all published devices of usb.",)),
        (1, (), ("No device of usb is published (yet).",)),
        (0, (), ()),
        (-1, (1,), ()),
    ],
)
def test_a_quota_of_more_than_the_devices_that_there_are(
    quota: int, capacities: tuple[int, ...], said: tuple[str, ...]
) -> None:
    context = rule_context("usb", *devices(*capacities))

    found = created(context, usb=(quota, -1))

    assert found.warnings == tuple(f"spec.resources[0].quota: {text}" for text in said)
