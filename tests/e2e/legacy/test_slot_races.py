"""Two nodes want one slot, and processes die between a write and its answer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from local_cluster.component_handles import ComponentProcess
from tests.e2e.legacy.slot_stories import ANY, A, B, SlotStory
from tests.e2e.sharing.objects import Object

FOO = "foo0"
REASON = "UnexpectedAdmissionError"


def message(pod: Object) -> str:
    return str(pod["status"].get("message", ""))


def test_of_two_nodes_that_take_one_slot_at_once_one_gets_it(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=1)
    slots.wait_offers({ANY: 1, FOO: 1})
    with slots.gate(FOO, A) as gate:
        slots.replica_set("loses", {FOO: 1}, A)
        slots.until("the write of a is held", lambda: gate.holds)
        slots.pod("wins", {ANY: 1}, B)
        # Sooner than it runs: a driver whose write is held gives up after some seconds.
        slots.wait_usage({slots.slot(FOO, 0): slots.by_any(FOO, B)})
        gate.let_pass()

        sentence = f"slot {slots.slot(FOO, 0)} is held by node {B} through the Configuration"
        slots.until("a pod is refused", lambda: sentence in " ".join(map(message, slots.failed())))

    assert {pod["status"]["reason"] for pod in slots.failed()} == {REASON}
    slots.wait_usage({slots.slot(FOO, 0): slots.by_any(FOO, B)})
    slots.wait_offers({ANY: 0, FOO: 0}, A)
    (waiting,) = slots.until("a replacement waits", slots.pending)
    dead = len(slots.failed())
    # One, as a rule: node and replacement come to kube-scheduler by two watches.
    assert dead <= 2

    slots.wait_running("wins")
    slots.end_pod("wins")

    slots.wait_running(waiting)
    slots.wait_usage({slots.slot(FOO, 0): A})
    assert len(slots.failed()) == dead


def test_a_driver_killed_between_write_and_answer_loses_no_slot(slots: SlotStory) -> None:
    driver = slots.drivers.nodes[A]
    assert isinstance(driver, ComponentProcess)
    slots.configure(FOO, capacity=1)
    slots.wait_offers({ANY: 1, FOO: 1})
    with slots.gate(FOO, A) as gate:
        slots.pod("cut-off", {FOO: 1}, A)
        slots.until("the write is held", lambda: gate.holds)
        # It gets no further, whatever the API server answers.
        driver.signal(signal.SIGSTOP)
        gate.let_pass()
        slots.wait_usage({slots.slot(FOO, 0): A})

    driver.kill()

    failed = slots.wait_phase("cut-off", "Failed")
    assert failed["status"]["reason"] == REASON
    slots.wait_usage({})
    slots.wait_offers({ANY: 1, FOO: 1})
    slots.run("next", {FOO: 1}, A)
    slots.wait_usage({slots.slot(FOO, 0): A})


def test_killed_drivers_and_kubelets_lose_nothing_that_was_given(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=3)
    slots.wait_offers({ANY: 1, FOO: 3})
    slots.run("through-any", {ANY: 1}, A)
    slots.run("through-one", {FOO: 1}, A)
    held = slots.usage()
    assert len(held) == 2

    slots.drivers.nodes[A].kill()
    slots.run("after-the-driver", {FOO: 1}, B)
    with kubelet_killed(slots):
        slots.end_pod("after-the-driver")

    slots.wait_usage(held)
    slots.run("after-the-kubelet", {FOO: 1}, A)
    slots.wait_held(3)
    untouched = generation(slots)
    with kubelet_killed(slots):
        slots.drivers.nodes[A].kill()
    slots.wait_offers({ANY: 1, FOO: 2}, A)
    slots.wait_held(3)
    # The kubelet lists no device at first. No slot was freed by that, not for a moment.
    assert generation(slots) == untouched
    slots.end_unharmed("through-any", "through-one", "after-the-kubelet")
    slots.wait_usage({})
    slots.wait_offers({ANY: 1, FOO: 3})


@contextmanager
def kubelet_killed(slots: SlotStory) -> Iterator[None]:
    """The kubelet of node-a is dead; afterwards it knows the device again.

    What the Node offers does not tell that: it may be from before.
    """
    kubelet = slots.cluster.part(f"kubelet-{A}")
    kubelet.kill()
    before = registrations(slots)
    try:
        yield
    finally:
        kubelet.start()
    slots.until("the kubelet knows the device", lambda: registrations(slots) > before)


def registrations(slots: SlotStory) -> int:
    """How often the device was registered with the kubelet of node-a."""
    said = f"Registered akri.sh/{slots.device(FOO)} with the kubelet"
    return slots.drivers.nodes[A].logs().count(said)


def generation(slots: SlotStory) -> int:
    """What counts the writes of the Instance's slots."""
    return int(slots.get("instance", slots.device(FOO))["metadata"]["generation"])
