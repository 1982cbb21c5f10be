"""Devices through the device plugin: who may use them, and when a slot is free again."""

from __future__ import annotations

import json
from functools import partial

from driver.devices import NUMA_NODE
from tests.e2e.legacy import kubelets
from tests.e2e.legacy.slot_stories import ANY, NODES, UNTIL_TOLD, A, B, SlotStory, digest

FOO, BAR = "foo0", "foo1"
INITIAL = {ANY: 2, FOO: 2, BAR: 2}


def test_two_nodes_share_devices_at_both_levels(slots: SlotStory) -> None:
    """The rows of uniqueDevices true: initial, two of any on a, one device on b, all released."""
    slots.configure(FOO, BAR, capacity=2)
    slots.wait_offers(INITIAL)

    slots.run("any", {ANY: 2}, A)

    first = {slots.slot(word, 0): slots.by_any(word, A) for word in (FOO, BAR)}
    slots.wait_usage(first)
    slots.wait_offers({ANY: 2, FOO: 1, BAR: 1})
    seen = slots.environment("any")
    assert {seen[f"DEBUG_ECHO_DESCRIPTION_{digest(w).upper()}"] for w in (FOO, BAR)} == {FOO, BAR}
    assert seen["DEBUG_ECHO_DESCRIPTION"] == min((FOO, BAR), key=digest)

    slots.run("one", {BAR: 1}, B)

    slots.wait_usage({**first, slots.slot(BAR, 1): B})
    slots.wait_offers({ANY: 2, FOO: 1, BAR: 0}, A)
    slots.wait_offers({ANY: 1, FOO: 1, BAR: 1}, B)

    slots.end_pod("any")
    slots.wait_usage({slots.slot(BAR, 1): B})
    slots.end_pod("one")

    slots.wait_usage({})
    slots.wait_offers(INITIAL)
    assert all(instance["spec"]["deviceUsage"] == {} for instance in slots.all("instance"))


def test_a_slot_is_freed_when_its_pod_ends_and_only_then(slots: SlotStory) -> None:
    slots.configure(FOO, BAR, capacity=7)
    slots.wait_offers({ANY: 2, FOO: 7, BAR: 7})
    told = {"command": UNTIL_TOLD, "restartPolicy": "Never"}
    ends = {"completes": 0, "fails": 1}
    for pod in ends:
        slots.pod(pod, {FOO: 1}, A, **told)
    for pod in ("is-deleted", "is-force-deleted"):
        slots.pod(pod, {FOO: 1}, A)
    slots.pod("crashes", {FOO: 1}, A, command=("sh", "-c", "exit 1"))
    dies, lives = slots.container("dies", {FOO: 1}, ("false",)), slots.container("main", {FOO: 1})
    slots.pod("half-dead", {}, A, restartPolicy="Never", containers=[lives, dies])
    slots.pod("asks-at-start", {}, A, initContainers=[slots.container("init", {BAR: 1}, ("true",))])
    slots.wait_running(*ends, "is-deleted", "is-force-deleted", "asks-at-start", "half-dead")
    slots.until("it crashed", lambda: slots.restarts("crashes") >= 1)
    slots.wait_held(8)

    for pod, code in ends.items():
        slots.tell_to_end(pod, code)
    slots.delete("pod", "is-force-deleted")
    slots.end_pod("is-deleted")

    slots.wait_phase("completes", "Succeeded")
    slots.wait_phase("fails", "Failed")
    slots.wait_held(4)
    given = kubelets.devices_given(slots.cluster, A)
    assert given[f"{slots.namespace}/crashes"] | given[f"{slots.namespace}/half-dead"] == {
        slot for slot in slots.usage() if slot.startswith(slots.device(FOO))
    }
    assert slots.slot(BAR, 0) in slots.usage()
    for pod in ("crashes", "half-dead", "asks-at-start"):
        slots.end_pod(pod)
    slots.wait_usage({})


def test_a_pod_of_the_same_name_takes_over_without_a_dead_one_in_between(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=1)
    slots.wait_offers({ANY: 1, FOO: 1})
    slots.stateful_set("camera", {FOO: 1}, A)
    slots.wait_running("camera-0")

    for _ in range(2):
        slots.end_and_wait_for_next("camera-0")

        slots.wait_usage({slots.slot(FOO, 0): A})
    reasons = {event["reason"] for event in slots.all("event")}
    assert not reasons & {"UnexpectedAdmissionError", "FailedCreate"}


def test_a_configuration_that_changes_under_use_takes_nothing_away(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2, uniqueDevices=False)
    slots.wait_offers({ANY: 2, FOO: 2})
    slots.run("two", {ANY: 2}, A)
    held = {slots.slot(FOO, n): slots.by_any(FOO, A, n) for n in range(2)}
    slots.wait_usage(held)
    slots.wait_offers({ANY: 2, FOO: 0}, A)
    slots.wait_offers({ANY: 0, FOO: 0}, B)

    # Were each slot a device still, there would be two of any for b, and four for a.
    said = {"DEBUG_ECHO_FLOOR": "2", "LD_PRELOAD": "forged", "HTTPS_PROXY": "forged"}
    slots.configure(FOO, capacity=4, uniqueDevices=True, brokerProperties=said)
    slots.wait_offers({ANY: 2, FOO: 2}, A)
    slots.wait_offers({ANY: 1, FOO: 2}, B)
    slots.run("late", {ANY: 1}, B)
    late = {slots.slot(FOO, 2): slots.by_any(FOO, B)}
    slots.wait_usage({**held, **late})
    assert slots.environment("late")["DEBUG_ECHO_FLOOR"] == "2"
    assert "forged" not in slots.environment("late").values()

    slots.configure(FOO, capacity=1, uniqueDevices=True)
    slots.wait_offers({ANY: 1, FOO: 0}, B)
    assert slots.usage() == {**held, **late}
    slots.end_pod("two")
    slots.wait_usage(late)
    slots.wait_offers({ANY: 0, FOO: 0}, A)
    slots.end_pod("late")
    slots.wait_offers({ANY: 1, FOO: 1})


def test_a_device_that_leaves_and_returns_keeps_its_slots(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2, offlineGracePeriod="5m")
    slots.wait_offers({ANY: 1, FOO: 2})
    slots.run("user", {FOO: 1}, A)
    held = slots.usage()

    with slots.all_devices_away():
        slots.wait_offers({ANY: 0, FOO: 0})
        assert slots.usage() == held

    slots.wait_offers({ANY: 1, FOO: 2}, A)
    assert slots.usage() == held
    assert (slots.phase("user"), slots.restarts("user")) == ("Running", 0)


def test_slots_of_a_degraded_device_are_given_to_nobody_new(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})
    slots.run("user", {FOO: 1}, A)
    slots.wait_offers({ANY: 1, FOO: 2}, A)
    held, before = slots.usage(), _uids(slots)

    with slots.all_devices_away("DEGRADED"):
        slots.wait_offers({ANY: 0, FOO: 0}, A)
        slots.wait_offers({ANY: 0, FOO: 0}, B)
        assert (slots.usage(), _uids(slots)) == (held, before)
        assert {len(nodes) for nodes in _seen(slots)} == {2}

    slots.wait_offers({ANY: 1, FOO: 2}, A)
    slots.wait_offers({ANY: 1, FOO: 1}, B)
    assert slots.usage() == held
    assert (slots.phase("user"), slots.restarts("user")) == ("Running", 0)


def test_instances_of_single_nodes_wait_for_their_device_that_nobody_uses(
    slots: SlotStory,
) -> None:
    details = json.dumps({"descriptions": [FOO], "shared": False})
    handler = {"name": "debugEcho", "discoveryDetails": details}
    slots.apply_configuration(handler, offlineGracePeriod="5m")
    slots.until("each node has one", lambda: _seen(slots) == [[A], [B]])
    before = _uids(slots)

    with slots.all_devices_away():
        slots.until("they are on no node", lambda: _seen(slots) == [[], []])

    slots.until("they are back", lambda: _seen(slots) == [[A], [B]])
    assert _uids(slots) == before


def _seen(slots: SlotStory) -> list[list[str]]:
    return sorted(instance["spec"]["nodes"] for instance in slots.all("instance"))


def _uids(slots: SlotStory) -> set[str]:
    return {instance["metadata"]["uid"] for instance in slots.all("instance")}


def test_a_configuration_that_is_deleted_under_use_waits_for_its_pods(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})
    slots.run("user", {FOO: 1}, A)
    taken = slots.usage()

    slots.api.delete(slots.path("configuration", slots.name))

    # What is free is offered no more, and what is held stays so.
    slots.until("b offers nothing", lambda: not any(slots.offers(B).values()))
    assert slots.usage() == taken
    assert (slots.phase("user"), slots.restarts("user")) == ("Running", 0)
    slots.end_pod("user")
    slots.until("its Instances are gone", lambda: not slots.all("instance"))
    for node in NODES:
        slots.until(f"{node} offers nothing", partial(_offers_nothing, slots, node))


def _offers_nothing(slots: SlotStory, node: str) -> bool:
    found = kubelets.allocatable(slots.cluster, node)
    return not any(amount for name, amount in found.items() if name.startswith(slots.name))


def test_the_topology_manager_admits_a_pod_only_near_to_its_device(slots: SlotStory) -> None:
    """The kubelet keeps what a container gets on one NUMA node; no machine has the last one."""
    near, far = 0, 63
    move_to(slots, near)
    slots.run("near", {FOO: 1}, A)
    slots.end_pod("near")
    slots.wait_usage({})

    move_to(slots, far)
    slots.pod("far", {FOO: 1}, A, restartPolicy="Never")
    assert slots.wait_phase("far", "Failed")["status"]["reason"] == "TopologyAffinityError"
    assert slots.usage() == {}


def move_to(slots: SlotStory, numa_node: int) -> None:
    """Say that the device is near to this one, and wait until the kubelet of A knows it."""
    slots.configure(FOO, brokerProperties={NUMA_NODE: str(numa_node)})
    told = (slots.slot(FOO, 0), {numa_node})
    slots.until(
        f"the kubelet was told of {told}",
        lambda: told in kubelets.numa_nodes(slots.cluster, A).items(),
    )
