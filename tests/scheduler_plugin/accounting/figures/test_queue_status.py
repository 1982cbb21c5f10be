"""The status of a Queue, as the ledger and the tree say it, and when it is written anew."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.figures.queue_status import (
    queue_object,
    queue_status,
)
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.devices import ClassView
from scheduler_plugin.objects.names import AccountingSettings, QueueName
from scheduler_plugin.objects.pods import PodView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_queue_object,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    our_class,
    pod_uid,
    put,
    their_class,
)

LATER = NOW + timedelta(minutes=5)
SINCE, SINCE_LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:05:00Z"


def put_object(world: World, obj: dict[str, Any]) -> None:
    """The world takes the Queue of an object."""
    world.put_queue(queue_object(obj).queue)


def status_of(world: World, obj: dict[str, Any], *, later: bool = False) -> Any:
    return queue_status(queue_object(obj), world, LATER if later else NOW)


def store(world: World, obj: dict[str, Any], *, later: bool = False) -> dict[str, Any]:
    """The object with the status that it should have."""
    status = status_of(world, obj, later=later)
    return obj if status is None else {**obj, "status": status}


def conditions(status: Any) -> dict[str, tuple[str, str, str]]:
    return {
        c["type"]: (c["status"], c["reason"], c["lastTransitionTime"]) for c in status["conditions"]
    }


def message(status: Any, kind: str) -> str:
    (found,) = [c["message"] for c in status["conditions"] if c["type"] == kind]
    return str(found)


def test_status_says_what_queues_under_their_quota_may_take_back() -> None:
    """What is beyond the quota, as far as preemptible pods have it."""
    quotas = {"lent": 1, "kept": 0, "own": 3, "all": -1}
    for name, quota in quotas.items():
        claims = [an_allocated_claim(f"{name}{n}", f"{name}{n}", queue=name) for n in range(3)]
        kept = {f"{name}0", f"{name}1"} if name == "kept" else ()
        pods = [
            a_pod(c.name, queue=name, claims=[c.name], node="n", non_preemptible=c.name in kept)
            for c in claims
        ]
        obj = a_queue_object(name, onvif=(quota, -1))
        world = a_world(*claims, *pods)
        put_object(world, obj)
        expected = {"lent": {"onvif": 2}, "kept": {"onvif": 1}}.get(name)
        assert status_of(world, obj).get("reclaimable") == expected


def test_status_says_what_the_queue_and_its_descendants_are_charged() -> None:
    obj = a_queue_object("vision", onvif=(4, 8), gpu=(0, 2))
    world = a_world(an_allocated_claim("cam", "a", "b", queue="vision"))
    put_object(world, obj)
    put(
        world,
        a_pod("a", queue="vision", node="n", non_preemptible=True),
        a_pod("b", queue="robots", node="n"),
        a_claim("wanted", requests=[a_request(count=3)]),
        a_pod("c", queue="vision", claims=["wanted"]),
    )

    assert status_of(world, obj) == {
        "observedGeneration": 1,
        "usage": {"gpu": 0, "onvif": 1},
        "usageNonPreemptible": {"gpu": 0, "onvif": 1},
        "requested": {"gpu": 0, "onvif": 4},
        "claims": {"owned": 1, "sharedOut": 1},
        "summary": "onvif 1/4/8, gpu 0/0/2",
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": SINCE,
                "reason": "Valid",
                "message": "The spec is in force.",
            }
        ],
    }


@pytest.mark.parametrize(
    ("quota", "limit", "used", "told"),
    [
        (2, 20, 2, {}),
        (0, -1, 0, {}),
        (-1, -1, 3, {}),
        (2, 20, 3, {"OverQuota": "It uses 3 onvif (quota 2): "}),
        (20, 20, 17, {}),
        (20, 20, 18, {"NearLimit": "It uses 18 onvif (limit 20): pods that need more wait."}),
        (3, 0, 0, {}),
        (0, 1, 1, {"OverQuota": "It uses 1 onvif (quota 0)", "NearLimit": "It uses 1 onvif"}),
    ],
)
def test_a_queue_says_what_it_borrows_and_that_it_has_little_left(
    quota: int, limit: int, used: int, told: dict[str, str]
) -> None:
    obj = a_queue_object("vision", onvif=(quota, limit))
    world = a_world(*(an_allocated_claim(f"cam-{n}", "a", queue="vision") for n in range(used)))
    put_object(world, obj)

    status = status_of(world, obj)

    found = {c["type"]: c["message"] for c in status["conditions"] if c["type"] != "Accepted"}
    assert found.keys() == told.keys()
    assert [kind for kind, said in told.items() if said not in found[kind]] == []


GPU = "gpu.example.com"
OF_GPU = f'device.driver == "{GPU}"'


@pytest.mark.parametrize(
    ("made", "drivers", "said"),
    [
        (their_class("gpu", OF_GPU), (), f"of driver {GPU}: other schedulers may allocate"),
        (their_class("gpu", OF_GPU), (), f"Set accounting.drivers: [moorage.dev, {GPU}]."),
        (their_class("gpu", OF_GPU), (GPU,), ""),
        (their_class("gpu", OF_GPU, labels={"moorage.dev/accounted": "false"}), (), ""),
        (their_class("gpu", 'device.driver == "moorage.dev"'), (), ""),
        (their_class("gpu", "true"), (), "is of a driver not known: other schedulers may"),
        (their_class("gpu", "true"), (), "uncharged unless it is moorage.dev."),
        (our_class("gpu"), (), ""),
        (None, (), ""),
    ],
)
def test_a_queue_says_which_driver_no_policy_keeps_other_schedulers_from(
    made: ClassView | None, drivers: tuple[str, ...], said: str
) -> None:
    obj = a_queue_object("vision", gpu=(1, 1))
    world = a_world(settings=AccountingSettings(accounted_drivers=("moorage.dev", *drivers)))
    put_object(world, obj)
    world.ledger.take_touched()
    if made is not None:
        put(world, made)

    told = {c["type"]: c["message"] for c in status_of(world, obj)["conditions"]}
    assert said in told.get("Unguarded", "")
    assert bool(said) is ("Unguarded" in told)
    is_news = made is not None and not made.configuration
    assert world.ledger.take_touched() == ((QueueName("vision"),) if is_news else ())


def test_what_claims_have_tells_the_driver_that_no_selector_names() -> None:
    obj = a_queue_object("vision", gpu=(1, 1))
    held = an_allocated_claim(
        "card", "a", queue="vision", requests=[a_request("gpu")], results=[a_result(driver=GPU)]
    )
    world = a_world(their_class("gpu", "true"), held)
    put_object(world, obj)

    assert f"is of driver {GPU}: " in message(status_of(world, obj), "Unguarded")
    world.delete_class(ClassName("gpu"))
    assert world.ledger.take_touched() == (QueueName("vision"),)
    assert "Unguarded" not in conditions(status_of(world, obj))


def test_a_claim_that_nobody_owns_is_shown_by_the_queues_whose_pods_use_it() -> None:
    world = a_world(
        a_pod("a", queue="vision", node="n"),
        a_pod("b", queue="robots", node="n"),
        a_pod("none", node="n"),
        an_allocated_claim("cam", "a", "b", "none"),
    )
    vision, idle = a_queue_object("vision"), a_queue_object("idle")
    for obj in (vision, idle):
        put_object(world, obj)

    assert status_of(world, vision)["claims"] == {"owned": 0, "sharedOut": 0, "orphans": 1}
    assert status_of(world, idle)["claims"] == {"owned": 0, "sharedOut": 0}
    world.ledger.take_touched()
    put(world, an_allocated_claim("cam", "a", "b", "none", queue="robots", owner_pod="b"))
    assert {"vision", "robots"} <= set(world.ledger.take_touched())
    assert status_of(world, vision)["claims"] == {"owned": 0, "sharedOut": 0}


def test_charge_of_a_class_that_the_queue_does_not_list_is_shown() -> None:
    obj = a_queue_object("vision")
    world = a_world(an_allocated_claim("cam", "a", queue="vision"))
    put_object(world, obj)

    status = status_of(world, obj)

    assert status["usage"] == {"onvif": 1}


def test_figures_of_no_class_are_left_out_since_an_apply_that_empties_a_map_is_refused() -> None:
    obj = a_queue_object("vision")
    world = a_world(an_allocated_claim("cam", "a", queue="vision"))
    put_object(world, obj)
    charged = store(world, obj)
    put(world, a_claim("cam"))

    status = status_of(world, charged)

    assert status.keys() == {"observedGeneration", "claims", "conditions"}
    assert status_of(world, {**charged, "status": status}) is None


def test_figures_are_cut_to_what_the_api_can_hold() -> None:
    obj = a_queue_object("vision")
    huge = an_allocated_claim(
        "cam",
        "a",
        queue="vision",
        results=[
            {
                "request": "req",
                "driver": "moorage.dev",
                "consumedCapacity": {"slots": str(2**63 - 1)},
            }
        ],
    )
    more = an_allocated_claim("other", "a", queue="vision")
    world = a_world(huge, more)
    put_object(world, obj)

    assert status_of(world, obj)["usage"] == {"onvif": 2**63 - 1}


def test_status_that_is_there_is_not_written() -> None:
    obj = a_queue_object("vision", parent="gone", onvif=(4, 8))
    world = a_world()
    put_object(world, obj)

    stored = store(world, obj)

    assert status_of(world, stored, later=True) is None


def test_spec_that_the_world_does_not_know_is_not_said_to_be_in_force() -> None:
    obj = a_queue_object("vision", onvif=(1, 2))
    world = a_world()

    assert status_of(world, obj) is None
    put_object(world, a_queue_object("vision", onvif=(1, 3)))
    assert status_of(world, obj) is None
    put_object(world, obj)
    assert status_of(world, obj)["usage"] == {"onvif": 0}


def test_another_writers_condition_is_his() -> None:
    obj = a_queue_object("vision")
    world = a_world()
    put_object(world, obj)
    stored = store(world, obj)
    stored["status"] = {
        **stored["status"],
        "conditions": [{"type": "example.com/Audited"}, *stored["status"]["conditions"]],
    }

    assert status_of(world, stored) is None


@pytest.mark.parametrize("field", ["usage", "claims", "conditions", "observedGeneration"])
def test_field_that_somebody_else_changed_is_written_again(field: str) -> None:
    obj = a_queue_object("vision", onvif=(1, 2))
    world = a_world()
    put_object(world, obj)
    stored = store(world, obj)
    right = stored["status"]
    stored["status"] = {name: value for name, value in right.items() if name != field}

    assert status_of(world, stored)[field] == right[field]


def test_missing_parent_is_a_condition_until_it_is_there() -> None:
    obj = a_queue_object("vision", parent="research")
    world = a_world()
    put_object(world, obj)
    stored = store(world, obj)

    assert conditions(stored["status"]) == {
        "Accepted": ("True", "Valid", SINCE),
        "ParentMissing": ("True", "ParentNotFound", SINCE),
    }
    put_object(world, a_queue_object("research"))
    assert list(conditions(status_of(world, stored))) == ["Accepted"]


def test_all_queues_that_lead_into_a_cycle_say_so() -> None:
    objects = [
        a_queue_object(name, parent=parent) for name, parent in (("a", "b"), ("b", "a"), ("c", "a"))
    ]
    world = a_world()
    for obj in objects:
        put_object(world, obj)

    found = [conditions(status_of(world, obj))["ParentCycle"] for obj in objects]

    assert found == [("True", "Cycle", SINCE)] * 3


def test_transition_time_stays_while_the_condition_does() -> None:
    world = a_world()
    obj = a_queue_object("vision", parent="research")
    put_object(world, obj)
    stored = store(world, obj)
    changed = a_queue_object("vision", parent="lab")
    put_object(world, changed)

    status = status_of(world, {**changed, "status": stored["status"]}, later=True)

    assert conditions(status)["ParentMissing"] == ("True", "ParentNotFound", SINCE)


def test_a_queue_with_an_entry_of_another_version_is_not_accepted() -> None:
    odd = [{"deviceClass": "onvif", "quota": 1}, {"deviceClass": "gpu", "per": "node"}]
    obj = a_queue_object("vision", resources=odd)
    world = a_world()
    put_object(world, obj)

    stored = store(world, obj)

    assert conditions(stored["status"])["Accepted"] == ("False", "OtherVersion", SINCE)
    assert message(stored["status"], "Accepted").startswith(
        "spec.resources[1]: Object contains unknown field `per`. No pod is bound until"
    )
    assert stored["status"]["usage"] == {"onvif": 0}
    assert status_of(world, stored, later=True) is None
    mended = {**a_queue_object("vision", onvif=(1, -1)), "status": stored["status"]}
    put_object(world, mended)
    found = conditions(status_of(world, mended, later=True))
    assert found["Accepted"] == ("True", "Valid", SINCE_LATER)


def test_an_entry_by_driver_says_that_no_policy_guards_it() -> None:
    entry = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}
    obj = a_queue_object("vision", resources=[entry])
    for drivers, is_said in (((), True), ((GPU,), False)):
        world = a_world(settings=AccountingSettings(accounted_drivers=("moorage.dev", *drivers)))
        put_object(world, obj)

        assert ("Unguarded" in conditions(status_of(world, obj))) is is_said
        if is_said:
            assert 'Entry "memory" counts devices' in message(status_of(world, obj), "Unguarded")


def unjudged(name: str, **fields: Any) -> PodView:
    """A pod that something else than Moorage gave its node."""
    asks = {"akri.sh/onvif": 2}
    return a_pod(name, queue="vision", node="n", requests=asks, unjudged=True, **fields)


def test_queue_says_who_names_it_and_is_charged_to_nobody() -> None:
    closed, other = a_queue_object("vision", namespaceSelector=None), a_queue_object("other")
    world = a_world(*(unjudged(f"p{number}") for number in range(5)))
    put_object(world, closed)
    put_object(world, other)

    status = status_of(world, closed)

    assert "usage" not in status
    assert conditions(status)["Unattributed"] == ("True", "NotJudged", SINCE)
    said = message(status, "Unattributed")
    assert said.startswith(
        "Pod default/p0 was bound without a verdict, and its namespace may not use queue"
        ' "vision": its 2 onvif are charged to no queue. Pod default/p1 '
    )
    assert said.count("charged to no queue") == 3
    assert said.endswith("2 more pods are like this.")
    assert "Unattributed" not in conditions(status_of(world, other))


def test_queue_that_admits_them_is_charged_for_all_who_name_it() -> None:
    world, obj = a_world(unjudged("a")), a_queue_object("vision", namespaceSelector=None)
    put_object(world, obj)
    stored = store(world, obj)
    touched(world)
    stored["spec"]["namespaceSelector"] = {}
    put_object(world, stored)

    status = status_of(world, stored)

    assert (status["usage"], list(conditions(status))) == ({"onvif": 2}, ["Accepted"])
    assert touched(world) == ("vision",)


def test_pod_that_comes_and_goes_has_the_queue_that_it_names_looked_at() -> None:
    world = a_world(a_queue("vision", namespaceSelector=None))
    touched(world)

    put(world, unjudged("a"))
    came = touched(world)
    world.delete_pod(pod_uid("a"))

    assert (came, touched(world)) == (("vision",), ("vision",))
    assert world.ledger.unattributed_of(QueueName("vision")) == ()


# Which queues are to be looked at after an event.


def touched(world: World) -> tuple[str, ...]:
    return world.ledger.take_touched()


def a_tree() -> World:
    world = a_world()
    for name, parent in (("research", ""), ("vision", "research"), ("lab", "vision"), ("x", "")):
        put_object(world, a_queue_object(name, **({"parent": parent} if parent else {})))
    touched(world)
    return world


def test_charge_touches_the_owner_and_its_ancestors() -> None:
    world = a_tree()

    put(world, an_allocated_claim("cam", "a", queue="vision"))

    assert touched(world) == ("research", "vision")
    put(world, an_allocated_claim("cam", "a", queue="vision"))
    assert touched(world) == ()


def test_foreign_pod_touches_the_owner_whose_claim_it_shares() -> None:
    world = a_tree()
    put(world, an_allocated_claim("cam", "a", "b", queue="vision"))
    put(world, a_pod("a", queue="vision", node="n"))
    touched(world)

    put(world, a_pod("b", queue="x", node="n"))

    assert "vision" in touched(world)
    assert "x" not in touched(world)


def test_queue_that_moves_touches_what_is_below_and_all_that_were_and_are_above() -> None:
    world = a_tree()
    put(world, an_allocated_claim("cam", "a", queue="lab"))
    touched(world)

    put_object(world, a_queue_object("vision", parent="x"))

    assert touched(world) == ("lab", "research", "vision", "x")


def test_queue_that_comes_or_goes_touches_the_children_that_miss_it() -> None:
    world = a_tree()

    world.delete_queue(QueueName("research"))

    assert touched(world) == ("lab", "research", "vision")
    put_object(world, a_queue_object("research"))
    assert touched(world) == ("lab", "research", "vision")


def test_changed_spec_touches_the_queue_alone_and_an_equal_one_nothing() -> None:
    world = a_tree()
    changed = a_queue_object("vision", parent="research", onvif=(1, 2))

    put_object(world, changed)
    assert touched(world) == ("vision",)
    put_object(world, changed)

    assert not world.ledger.is_touched
