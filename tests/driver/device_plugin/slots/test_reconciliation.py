"""Slot reconciliation: the stories of pods that end, and of slots that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from driver.api import NodeName
from driver.device_ids import DeviceKey
from driver.device_plugin.slots.reconciliation import (
    SETTLED,
    Evidence,
    Reconciliation,
    SlotConflict,
    Waiting,
    reconcile,
)
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePod, NodePods, PodName
from driver.instances.slots.slot_writes import SlotWrite, is_overtaken
from tests.driver.device_sharing_tables import USAGE
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    RESOURCE,
    an_instance_object,
    by_configuration,
)
from tests.fakes.slot_instances import FakeInstances

SLOT, OTHER_SLOT = f"{CAMERA_1}-0", f"{CAMERA_1}-1"
IL_RESOURCE = f"akri.sh/{CAMERA_1}"
SLOT_DEVICE = DeviceKey(IL_RESOURCE, SLOT)
WHOLE_DEVICE = DeviceKey(RESOURCE, CAMERA_1)
LONG_AGO, NOW = 1.0, 1000.0


@dataclass
class FakeNode:
    """A node at one moment: its pods in the API, and what its kubelet lists."""

    api: FakeInstances = field(default_factory=lambda: FakeInstances.of(CAMERA_1, CAMERA_2))
    pods: dict[str, NodePod] = field(default_factory=dict)
    listed: set[ListedDevice] = field(default_factory=set)
    allocated: dict[DeviceKey, float] = field(default_factory=dict)
    users: dict[DeviceKey, PodName] = field(default_factory=dict)
    answers: bool = True

    def slot(self, slot: str, value: str = NODE_A) -> FakeNode:
        self.api.by_hand(slot, value)
        return self

    def pod(self, name: str = "pod", *, phase: str = "Running", **requests: Any) -> FakeNode:
        wanted = requests.get("wants", {IL_RESOURCE: 1})
        finished = phase in ("Succeeded", "Failed")
        uid = requests.get("uid", f"uid-of-{name}")
        self.pods[name] = NodePod(PodName("default", name), uid, finished, wanted)
        return self

    def lists(self, name: str = "pod", device: DeviceKey = SLOT_DEVICE) -> FakeNode:
        self.listed.add(ListedDevice(PodName("default", name), "main", device))
        return self

    def allocate(self, device: DeviceKey = SLOT_DEVICE, at: float = LONG_AGO) -> FakeNode:
        self.allocated[device] = at
        return self

    def look(
        self, *, asked: float = NOW, as_of: float = NOW, name: NodeName = NODE_A
    ) -> Reconciliation:
        listing = Listing(asked, frozenset(self.listed)) if self.answers else None
        pods = NodePods(as_of, tuple(self.pods.values()))
        evidence = Evidence(listing=listing, pods=pods, allocated=self.allocated, users=self.users)
        return reconcile(name, self.api.views(), evidence)

    def settle(self) -> dict[str, str]:
        """Carry out what is decided; afterwards there is nothing more to decide."""
        self.api.write(self.look().writes)
        assert self.look().writes == ()
        return self.api.usage()


def a_running_pod() -> FakeNode:
    """A pod whose container uses a slot, and everything says so."""
    return FakeNode().slot(SLOT).pod().lists().allocate()


def reasons(found: Reconciliation) -> str:
    return " ".join(waiting.reason for waiting in found.waiting)


def test_nothing_is_done_while_all_agree() -> None:
    assert a_running_pod().look() == Reconciliation()


# A pod that ends.


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_slot_is_released_when_its_pod_is_completed_failed_or_evicted(phase: str) -> None:
    node = a_running_pod()

    node.listed.clear()
    node.pod(phase=phase)

    assert node.settle() == {}


def test_a_slot_is_released_when_its_pod_is_deleted() -> None:
    node = a_running_pod()

    node.listed.clear()
    node.pods.clear()

    assert node.settle() == {}


def test_a_pod_that_is_deleted_by_force_keeps_its_slot_while_the_kubelet_lists_it() -> None:
    node = a_running_pod()

    node.pods.clear()
    found = node.look()

    assert found.writes == ()
    assert "still lists it for pod default/pod, which is gone" in reasons(found)
    node.listed.clear()
    assert node.settle() == {}


def test_a_pod_that_is_being_terminated_keeps_its_slot() -> None:
    node = a_running_pod()

    node.listed.clear()

    assert node.look().writes == ()


def test_a_slow_kubelet_that_lists_a_finished_pod_delays_the_release() -> None:
    node = a_running_pod().pod(phase="Succeeded")

    found = node.look()

    assert found.writes == ()
    assert found.waiting[0].subject == SLOT
    node.listed.clear()
    assert node.settle() == {}


def test_a_crash_looping_container_keeps_its_slot() -> None:
    """The pod is Running and the kubelet lists it, whatever its containers do."""
    node = a_running_pod().pod(phase="Running")

    assert node.look() == Reconciliation()


def test_one_of_two_containers_that_is_dead_keeps_its_slot() -> None:
    node = FakeNode().slot(SLOT).slot(OTHER_SLOT).pod(wants={IL_RESOURCE: 2})
    node.lists().lists(device=DeviceKey(IL_RESOURCE, OTHER_SLOT))

    assert node.look() == Reconciliation()


def test_a_container_of_another_pod_that_is_not_ready_delays_nothing() -> None:
    """The first design waited until no container of the node was unready, perhaps for ever."""
    node = a_running_pod().pod("ended", phase="Failed").slot(OTHER_SLOT)
    node.pod("starting", phase="Pending", wants={})

    assert node.settle() == {SLOT: NODE_A}


def test_a_pod_rejected_after_allocate_by_another_plugin_gives_its_slot_back() -> None:
    node = FakeNode().slot(SLOT).pod(phase="Failed").allocate(at=NOW - SETTLED)

    assert node.settle() == {}


# The three orderings of the document on slot reconciliation: delete and allocate of one slot.


def test_allocate_after_the_release_finds_a_free_slot() -> None:
    node = a_running_pod()
    node.listed.clear()
    node.pods.clear()

    assert node.settle() == {}


def test_allocate_while_the_release_is_under_way_is_not_undone_by_it() -> None:
    """Decided from evidence of before, and carried out after: the guard of the write says no."""
    node = a_running_pod()
    node.listed.clear()
    node.pods.clear()
    decided = node.look().writes

    node.allocate(at=NOW + 0.1).pod("next")

    assert is_overtaken(decided[0], node.allocated)
    assert node.look(asked=NOW + 0.2, as_of=NOW + 0.2).writes == ()


def test_allocate_before_the_old_pod_is_deleted_keeps_the_slot_for_the_new_one() -> None:
    """The document lets this Allocate fail; here the kubelet's decision stands."""
    node = a_running_pod().allocate(at=NOW - 1.0).pod("next")
    node.listed.clear()
    node.pods.pop("pod")

    assert node.look().writes == ()
    assert node.lists("next").look() == Reconciliation()


@pytest.mark.parametrize(("asked", "as_of"), [(NOW - 1, NOW), (NOW, NOW - 1), (NOW - 1, NOW - 1)])
def test_evidence_from_before_the_allocate_proves_nothing(asked: float, as_of: float) -> None:
    node = FakeNode().slot(SLOT).allocate(at=NOW - 0.5)

    found = node.look(asked=asked, as_of=as_of)

    assert found.writes == ()
    assert "given it after the listing" in reasons(found)
    assert node.look(asked=NOW + SETTLED, as_of=NOW).writes


@pytest.mark.parametrize(("asked", "as_of"), [(NOW, NOW - 3), (NOW - 3, NOW)])
def test_the_guard_is_the_earlier_of_both_pieces_of_evidence(asked: float, as_of: float) -> None:
    write = FakeNode().slot(SLOT).look(asked=asked, as_of=as_of).writes[0]

    assert write.unless_allocated == {SLOT_DEVICE: NOW - 3}


@pytest.mark.parametrize("state", USAGE)
def test_v3_every_state_of_the_tables_goes_back_to_the_initial_one(state: str) -> None:
    """Both nodes release what their pods had."""
    node = FakeNode()
    for slot, value in USAGE[state].items():
        node.slot(slot, value)

    for name in (NODE_A, NODE_B):
        node.api.write(node.look(name=name).writes)

    assert node.api.usage() == {}


# Evidence that is late, missing or partial.


def test_a_slot_is_kept_between_our_answer_and_the_listing() -> None:
    node = FakeNode().slot(SLOT).pod(phase="Pending").allocate(at=NOW - 5)

    found = node.look()

    assert found.writes == ()
    assert found.waiting == (
        Waiting(SLOT, f"pod default/pod may hold devices of {IL_RESOURCE} that are not listed yet"),
    )


def test_a_stateful_set_pod_of_the_same_name_is_a_new_user() -> None:
    """The old pod is deleted and its device not listed; the new one waits to be admitted."""
    node = FakeNode().slot(SLOT).allocate().pod("web-0", uid="new", phase="Pending")

    assert node.look().writes == ()
    node.lists("web-0", DeviceKey(IL_RESOURCE, OTHER_SLOT)).slot(OTHER_SLOT)
    assert node.settle() == {OTHER_SLOT: NODE_A}


def test_an_old_pod_of_the_same_name_does_not_cover_a_new_one_in_the_listing() -> None:
    """Deleted by force, the old pod is still listed, and it is the new one that seems covered."""
    node = FakeNode().slot(SLOT).slot(OTHER_SLOT).pod("web-0", uid="new").lists("web-0")
    node.allocate(DeviceKey(IL_RESOURCE, OTHER_SLOT), at=NOW - SETTLED / 2)

    assert node.look().writes == ()


def test_a_request_only_in_an_init_container_keeps_its_slot_while_the_pod_lives() -> None:
    """The listing omits regular init containers, and the kubelet keeps their devices."""
    node = FakeNode().slot(SLOT).allocate().pod("with-init", wants={IL_RESOURCE: 1})

    assert node.look().writes == ()
    node.pod("with-init", phase="Succeeded")
    assert node.settle() == {}


def test_a_pod_that_is_never_listed_holds_up_no_release_of_what_others_had() -> None:
    node = FakeNode().slot(SLOT).slot(OTHER_SLOT).pod("init-only")
    node.users[SLOT_DEVICE] = PodName("default", "ended")

    assert node.settle() == {OTHER_SLOT: NODE_A}


def test_a_pod_of_the_same_name_may_have_the_device_again() -> None:
    node = FakeNode().slot(SLOT).pod("init-only").pod("again")
    node.users[SLOT_DEVICE] = PodName("default", "again")

    assert node.settle() == {SLOT: NODE_A}


def test_pod_resources_that_do_not_answer_change_nothing() -> None:
    node = a_running_pod().slot(OTHER_SLOT).slot(f"{CAMERA_2}-0", NODE_B)
    node.pods.clear()
    node.answers = False

    found = node.look()

    assert found.writes == ()
    assert [w.subject for w in found.waiting] == [SLOT, OTHER_SLOT]
    assert "not available" in reasons(found)


def test_a_node_that_holds_nothing_looks_again_when_its_kubelet_is_back() -> None:
    """Its slots may have been freed while it was away, and its containers run on."""
    node = FakeNode(answers=False).pod()

    assert [waiting.subject for waiting in node.look().waiting] == [NODE_A]


def test_pods_that_are_not_listed_yet_are_looked_for_again() -> None:
    """A kubelet that was started anew answers with an empty listing at first."""
    node = FakeNode().pod()
    (waiting,) = node.look().waiting

    assert waiting == Waiting(
        IL_RESOURCE, "pod default/pod asks for it and is not listed with it yet"
    )
    assert node.lists().settle() == {SLOT: NODE_A}


def test_a_partial_listing_after_the_kubelet_restarted_frees_nothing_that_pods_ask_for() -> None:
    node = a_running_pod()

    node.listed.clear()

    assert node.look().writes == ()


def test_a_partial_listing_holds_up_only_the_resources_it_is_partial_about() -> None:
    node = a_running_pod().slot(f"{CAMERA_2}-0").slot(f"{CAMERA_2}-1", by_configuration(CAMERA_2))
    node.listed.clear()

    assert node.settle() == {SLOT: NODE_A}


def test_a_driver_killed_between_its_write_and_the_answer_gives_the_slot_back() -> None:
    """The kubelet fails the pod, the next driver has no memory of the Allocate."""
    node = FakeNode().slot(SLOT).pod(phase="Failed")

    assert node.settle() == {}


def test_a_driver_killed_after_its_answer_keeps_the_slot() -> None:
    node = FakeNode().slot(SLOT).pod(phase="Pending")

    assert node.look().writes == ()


def test_a_restart_that_missed_every_event_releases_what_ended_meanwhile() -> None:
    node = FakeNode().slot(SLOT).slot(f"{CAMERA_2}-1", by_configuration(CAMERA_2))

    assert node.settle() == {}


def test_slots_of_other_nodes_are_left_alone() -> None:
    node = FakeNode().slot(SLOT, NODE_B).slot(OTHER_SLOT, by_configuration(CAMERA_1, NODE_B))

    assert node.look() == Reconciliation()


def test_both_ways_of_holding_are_released() -> None:
    node = FakeNode().slot(SLOT).slot(OTHER_SLOT, by_configuration(CAMERA_1))
    node.slot(f"{CAMERA_2}-0", by_configuration("akri-onvif-4"))
    node.slot(f"{CAMERA_2}-1", by_configuration("0"))

    assert [sorted(w.changes) for w in node.look().writes] == [[0, 1], [0, 1]]
    assert node.settle() == {}


@pytest.mark.parametrize("vdev", ["0", "akri-onvif-4", CAMERA_1, SLOT])
def test_ids_of_every_style_are_kept_while_listed(vdev: str) -> None:
    """What a pod got from a running Akri stays its own after the change to this driver."""
    node = FakeNode().slot(SLOT, by_configuration(vdev)).pod(wants={RESOURCE: 1})
    node.lists(device=DeviceKey(RESOURCE, vdev))

    assert node.look() == Reconciliation()


def test_an_id_listed_for_the_other_resource_does_not_keep_a_slot() -> None:
    node = FakeNode().slot(SLOT, by_configuration(SLOT)).pod().lists(device=SLOT_DEVICE)

    assert node.settle() == {SLOT: NODE_A}


# Slots written by hand.


def test_a_slot_taken_by_hand_without_a_container_is_released() -> None:
    assert FakeNode().slot(SLOT).settle() == {}


def test_a_slot_cleared_by_hand_under_its_container_is_taken_back() -> None:
    node = a_running_pod()

    node.api.by_hand(SLOT, None)

    assert node.settle() == {SLOT: NODE_A}


def test_a_slot_of_the_configuration_cleared_by_hand_is_taken_back() -> None:
    for device, slot in ((CAMERA_1, SLOT), (OTHER_SLOT, OTHER_SLOT)):
        node = FakeNode().pod(wants={RESOURCE: 1}).lists(device=DeviceKey(RESOURCE, device))

        assert node.settle() == {slot: by_configuration(device)}


def test_a_slot_given_by_hand_to_another_node_is_a_conflict_that_is_said() -> None:
    node = a_running_pod().slot(SLOT, NODE_B)

    assert node.look() == Reconciliation(
        conflicts=(
            SlotConflict(
                PodName("default", "pod"),
                SLOT_DEVICE,
                CAMERA_1,
                "Container main uses device akri-onvif-8120fe-0 without a slot: slot"
                " akri-onvif-8120fe-0 is held by node node-b through the Instance",
            ),
        )
    )


def test_a_whole_instance_without_a_slot_left_is_a_conflict_that_names_all() -> None:
    node = FakeNode().slot(SLOT, NODE_B).slot(OTHER_SLOT, NODE_B).pod(wants={RESOURCE: 1})
    node.lists(device=WHOLE_DEVICE)

    found = node.look()

    assert found.writes == ()
    assert "no slot left of its 2" in found.conflicts[0].sentence


def test_a_slot_with_nonsense_is_left_and_its_user_told() -> None:
    node = a_running_pod().slot(SLOT, "C:x")

    found = node.look()

    assert found.writes == ()
    assert "names no holder" in found.conflicts[0].sentence


def test_a_slot_in_the_name_of_another_id_goes_to_the_container_that_uses_it() -> None:
    node = FakeNode().slot(SLOT, by_configuration(OTHER_SLOT)).pod(wants={RESOURCE: 1})
    node.lists(device=DeviceKey(RESOURCE, SLOT))

    assert node.settle() == {SLOT: by_configuration(SLOT)}


def test_one_id_on_two_slots_keeps_the_lower_one() -> None:
    node = FakeNode().slot(SLOT, by_configuration(CAMERA_1)).pod(wants={RESOURCE: 1})
    node.slot(OTHER_SLOT, by_configuration(CAMERA_1)).lists(device=WHOLE_DEVICE)

    assert node.settle() == {SLOT: by_configuration(CAMERA_1)}


def test_two_containers_that_share_a_device_take_back_one_slot() -> None:
    node = FakeNode().pod(wants={RESOURCE: 1}).lists(device=WHOLE_DEVICE)
    node.listed.add(ListedDevice(PodName("default", "pod"), "sidecar", WHOLE_DEVICE))

    assert node.settle() == {SLOT: by_configuration(CAMERA_1)}


def test_two_ids_of_one_instance_take_back_two_slots() -> None:
    """An id of either policy, after `uniqueDevices` changed while pods ran."""
    node = FakeNode().pod(wants={RESOURCE: 2}).lists(device=WHOLE_DEVICE)
    node.lists(device=DeviceKey(RESOURCE, OTHER_SLOT))

    assert node.settle() == {
        SLOT: by_configuration(CAMERA_1),
        OTHER_SLOT: by_configuration(OTHER_SLOT),
    }


def test_a_slot_beyond_a_lowered_capacity_is_taken_back_by_its_user() -> None:
    node = FakeNode(FakeInstances(an_instance_object(CAMERA_1, capacity=1)))
    node.pod().lists(device=DeviceKey(IL_RESOURCE, f"{CAMERA_1}-3"))

    assert node.settle() == {f"{CAMERA_1}-3": NODE_A}


@pytest.mark.parametrize("phase", ["Succeeded", ""])
def test_nothing_is_taken_back_for_a_pod_that_ended_or_is_not_seen(phase: str) -> None:
    node = FakeNode().lists()
    if phase:
        node.pod(phase=phase)

    found = node.look()

    assert found.writes == ()
    assert "gone or not seen yet" in reasons(found)


@pytest.mark.parametrize(
    "device",
    [
        DeviceKey("akri.sh/usb-8120fe", "usb-8120fe-0"),
        DeviceKey("akri.sh/usb", "usb-8120fe"),
        DeviceKey("akri.sh/usb", SLOT),
        DeviceKey(RESOURCE, "akri-onvif-3"),
        DeviceKey(IL_RESOURCE, "x"),
    ],
)
def test_devices_of_unknown_instances_change_nothing(device: DeviceKey) -> None:
    assert FakeNode().pod(wants={device.resource: 1}).lists(device=device).look() == (
        Reconciliation()
    )


def test_an_instance_that_waits_to_be_deleted_is_released_too() -> None:
    body = an_instance_object(CAMERA_1, {SLOT: NODE_A}, nodes=[])
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert FakeNode(FakeInstances(body)).settle() == {}


def test_a_release_and_a_taking_of_one_instance_are_one_write() -> None:
    node = FakeNode().slot(OTHER_SLOT).pod().lists()

    writes: tuple[SlotWrite, ...] = node.look().writes

    assert len(writes) == 1
    assert changes(writes[0]) == {0: True, 1: False}
    assert node.look().waiting == ()


def changes(write: SlotWrite) -> Mapping[int, bool]:
    """Which slots a write takes, and which it releases."""
    return {index: holder is not None for index, holder in sorted(write.changes.items())}
