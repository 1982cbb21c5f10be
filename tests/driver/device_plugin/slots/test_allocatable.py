"""What a Node should say of its resources before its kubelet does."""

from __future__ import annotations

from driver.device_plugin.slots.allocatable import Allocatable, status_patch

ONE, OTHER = "akri.sh/camera", "akri.sh/camera-8120fe"


def watched(**told: int) -> Allocatable:
    """Of resources `one` and `other`, that the kubelet watches and that the Node says already."""
    allocatable = Allocatable()
    for name, healthy in told.items():
        resource = {"one": ONE, "other": OTHER}[name]
        allocatable.open(resource)
        allocatable.tell(resource, healthy)
    allocatable.say(allocatable.due())
    return allocatable


def test_a_patch_names_amounts_as_the_api_does() -> None:
    assert status_patch({OTHER: 0, ONE: 3}) == {
        "status": {"allocatable": {"akri.sh/camera": "3", "akri.sh/camera-8120fe": "0"}}
    }


def test_only_what_changed_is_due_and_only_until_it_is_said() -> None:
    allocatable = watched(one=2, other=5)

    allocatable.tell(ONE, 1)
    allocatable.tell(OTHER, 5)

    assert allocatable.due() == {ONE: 1}
    assert (allocatable.owes(ONE), allocatable.owes(OTHER)) == (True, False)
    allocatable.say({ONE: 1})
    assert not allocatable.owes(ONE)
    assert allocatable.due() == {}


def test_what_changed_back_while_it_was_written_is_due_again() -> None:
    allocatable = watched(one=2)
    allocatable.tell(ONE, 1)
    due = allocatable.due()

    allocatable.tell(ONE, 2)
    allocatable.say(due)

    assert allocatable.due() == {ONE: 2}


def test_a_kubelet_that_watches_anew_counts_anew() -> None:
    """It counted none in between, and may have written that."""
    allocatable = watched(one=2)

    allocatable.close(ONE)
    assert allocatable.due() == {}
    allocatable.open(ONE)
    assert allocatable.due() == {}
    allocatable.tell(ONE, 2)

    assert allocatable.due() == {ONE: 2}


def test_nothing_is_promised_for_a_kubelet_that_hung_up() -> None:
    allocatable = watched(one=2)
    allocatable.tell(ONE, 3)

    allocatable.close(ONE)

    assert allocatable.due() == {}


def test_a_resource_that_is_no_more_is_said_to_be_none_and_forgotten() -> None:
    allocatable = watched(one=2)
    allocatable.tell(ONE, 0)
    allocatable.close(ONE)

    due = allocatable.due()
    allocatable.say(due)

    assert due == {ONE: 0}
    assert allocatable.due() == {}
    assert not allocatable.lacks(ONE, 1)


def test_what_is_doubted_is_said_again() -> None:
    allocatable = watched(one=1)
    assert not allocatable.lacks(ONE, 1)

    allocatable.doubt(ONE)

    assert allocatable.lacks(ONE, 1)
    assert allocatable.due() == {ONE: 1}


def test_a_resource_that_the_kubelet_does_not_watch_lacks_nothing() -> None:
    assert not Allocatable().lacks(ONE, 1)
