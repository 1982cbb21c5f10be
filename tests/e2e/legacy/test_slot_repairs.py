"""What kubelets, nodes and people leave behind: slots are put right, and none is lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import grpc

from local_cluster import loop_devices
from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy import kubelets
from tests.e2e.legacy.lost_nodes import lost, shut_down, stuck
from tests.e2e.legacy.slot_stories import ANY, A, B, SlotStory
from tests.e2e.sharing.objects import Object

FOO = "foo0"
ELSEWHERE = "default"


def events(slots: SlotStory, reason: str) -> list[Object]:
    return [event for event in slots.all("event") if event["reason"] == reason]


def write_usage(slots: SlotStory, word: str, usage: dict[str, str | None]) -> None:
    """Write slots as an administrator would."""
    slots.api.patch(slots.path("instance", slots.device(word)), {"spec": {"deviceUsage": usage}})


def test_a_kubelet_that_does_not_answer_frees_nothing(slots: SlotStory, drivers: Drivers) -> None:
    log = drivers.nodes[A].logs
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})
    for pod in ("stays", "goes"):
        slots.run(pod, {FOO: 1}, A)
    all_of_a = {slots.slot(FOO, index): A for index in range(2)}
    slots.wait_usage(all_of_a)
    unanswered = log().count("No listing from the kubelet")

    with stuck(slots.cluster, A):
        slots.delete("pod", "goes")
        slots.until(
            "the kubelet was asked in vain",
            lambda: log().count("No listing from the kubelet") > unanswered,
        )
        assert slots.usage() == all_of_a
    slots.wait_held(1)
    slots.end_unharmed("stays")
    slots.wait_usage({})


def test_a_node_that_is_shut_down_gives_its_slots_up_and_continues_with_what_is_left(
    slots: SlotStory,
) -> None:
    slots.configure(FOO, capacity=3)
    slots.wait_offers({ANY: 1, FOO: 3})
    for pod in ("first", "second", "third"):
        slots.run(pod, {FOO: 1}, A)
    slots.wait_held(3)

    with lost(slots.cluster, A), shut_down(slots.cluster, A):
        slots.wait_usage({})
        slots.run("heir", {FOO: 1}, B)
        (inherited,) = slots.usage()
    users = slots.until("the kubelet knows who runs", lambda: users_on(slots, A))
    # At the end of any pod the driver looks; else it does so within a minute.
    slots.end_unharmed("third")

    kept = dict.fromkeys(users.keys() - {inherited}, A)
    slots.wait_usage({inherited: B, **kept})
    if inherited in users:
        (conflict,) = slots.until("it is told", lambda: events(slots, "SlotConflict"))
        assert f"slot {inherited} is held by node {B}" in conflict["message"]
        assert conflict["involvedObject"]["name"] == users[inherited]
    slots.end_unharmed("heir")
    slots.wait_usage(dict.fromkeys(users, A))
    slots.end_unharmed("first", "second")
    slots.wait_usage({})
    slots.wait_offers({ANY: 1, FOO: 3})


def test_a_lost_node_gives_up_what_no_pod_of_it_asks_for(
    slots: SlotStory, drivers: Drivers
) -> None:
    """It may only be cut off, with its containers running."""
    log, kept = drivers.shared.logs, f"may still run node={A}"
    slots.configure(FOO, capacity=3)
    slots.wait_offers({ANY: 1, FOO: 3})
    slots.run("stays", {FOO: 1}, A)
    slots.run("goes", {ANY: 1}, A)
    slots.wait_held(2)
    stays = {slot: holder for slot, holder in slots.usage().items() if holder == A}
    before, held = log().count(kept), slots.usage()

    with lost(slots.cluster, A):
        slots.until("its pods are asked for", lambda: log().count(kept) > before)
        assert slots.usage() == held
        at_once = ("--grace-period=0", "--force", "--wait=false")
        slots.cluster.kubectl("delete", "pod", "goes", "-n", slots.namespace, *at_once)

        slots.wait_usage(stays)
        (told,) = slots.until("it is told", lambda: events(slots, "SlotsReleased"))
        assert "and its pods are gone: it holds" in told["message"]
    slots.end_unharmed("stays")
    slots.wait_usage({})


def users_on(slots: SlotStory, node: str) -> dict[str, str]:
    """The pods that the kubelet knows to use devices, by slot; none before it knows both."""
    try:
        given = kubelets.devices_given(slots.cluster, node)
    except grpc.RpcError:  # It was started just now.
        return {}
    users = {
        device: pod
        for pod in ("first", "second")
        for device in given.get(f"{slots.namespace}/{pod}", ())
    }
    return users if len(users) == 2 else {}


def test_slots_that_were_written_by_hand_are_put_right_both_ways(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=4)
    slots.wait_offers({ANY: 1, FOO: 4})
    slots.run("user", {FOO: 1}, A)
    (held,) = slots.usage()
    nobody, nonsense, idle = sorted({slots.slot(FOO, index) for index in range(4)} - {held})

    write_usage(slots, FOO, {held: None, nobody: "no-such-node", nonsense: "C:", idle: B})

    slots.wait_usage({held: A, nonsense: "C:"})
    slots.wait_offers({ANY: 1, FOO: 3}, A)
    slots.wait_offers({ANY: 1, FOO: 2}, B)
    (odd, *_) = slots.until("the nonsense is told", lambda: events(slots, "OddDeviceUsage"))
    assert f"slot {nonsense} has the value 'C:', which names no holder" in odd["message"]
    write_usage(slots, FOO, {nonsense: None})
    slots.wait_usage({held: A})
    slots.wait_offers({ANY: 1, FOO: 4}, A)


def test_a_slot_of_one_nodes_own_device_is_not_left_to_another(slots: SlotStory) -> None:
    details = json.dumps({"descriptions": [FOO], "shared": False})
    slots.apply_configuration({"name": "debugEcho", "discoveryDetails": details})
    name = slots.until("node-a has its own", lambda: own_instance(slots, A))

    slots.api.patch(slots.path("instance", name), {"spec": {"deviceUsage": {f"{name}-0": B}}})

    (released, *_) = slots.until("it is told", lambda: events(slots, "SlotsReleased"))
    assert f"Node {B} does not see the device: it holds {name}-0" in released["message"]
    slots.wait_usage({})


def own_instance(slots: SlotStory, node: str) -> str:
    """The Instance of the device that this node has for itself; empty while there is none."""
    found = (i["metadata"]["name"] for i in slots.all("instance") if i["spec"]["nodes"] == [node])
    return next(found, "")


def test_of_two_configurations_of_one_name_the_older_has_it(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})
    younger = slots.get("configuration", slots.name)
    created = datetime.fromisoformat(younger["metadata"]["creationTimestamp"])
    # Kubernetes tells ages by the second; of the same age is whose namespace sorts first.
    slots.until("it is older", lambda: datetime.now(UTC) - created > timedelta(seconds=1))
    younger["metadata"] = {"name": slots.name}
    younger["spec"]["capacity"] = 9
    younger.pop("status", None)
    path = f"/apis/akri.sh/v0/namespaces/{ELSEWHERE}/configurations"

    slots.api.create(path, younger)
    try:
        told = slots.until(
            "it says so", lambda: conditions(slots.api.get(f"{path}/{slots.name}")).get("NameTaken")
        )
    finally:
        slots.api.delete(f"{path}/{slots.name}")

    sentence = f"The older Configuration {slots.namespace}/{slots.name} holds this name."
    assert (told["status"], told["message"]) == ("True", sentence)
    assert "NameTaken" not in conditions(slots.get("configuration", slots.name))
    slots.wait_offers({ANY: 1, FOO: 2})


def conditions(configuration: Object) -> dict[str, Object]:
    found = configuration.get("status", {}).get("conditions", ())
    return {condition["type"]: condition for condition in found}


def test_two_slots_of_one_device_are_one_device_in_the_container(slots: SlotStory) -> None:
    with loop_devices.plugged() as disk:
        details = json.dumps({"udevRules": [f'KERNEL=="{disk.name}"']})
        handler = {"name": "udev", "discoveryDetails": details}
        slots.apply_configuration(handler, capacity=2, uniqueDevices=False)

        slots.run("both", {ANY: 2}, A)

        usage = slots.usage()
        (device,) = {slot.rpartition("-")[0] for slot in usage}
        expected = {f"{device}-{index}": f"C:{device}-{index}:{A}" for index in range(2)}
        assert usage == expected
        ask = ("exec", "-n", slots.namespace, "both", "--", "sh", "-c")
        shown = slots.cluster.kubectl(*ask, "ls /dev | grep loop; echo $UDEV_DEVNODE").stdout
        assert shown.split() == [disk.name, f"/dev/{disk.name}"]
        slots.end_pod("both")
        slots.wait_usage({})
