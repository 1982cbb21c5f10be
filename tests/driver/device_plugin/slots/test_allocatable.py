"""What a Node should say of its resources before its kubelet does."""

from __future__ import annotations

from driver.device_plugin.slots.allocatable import Allocatable, status_patch

ONE, OTHER = "akri.sh/camera", "akri.sh/camera-8120fe"


def watched(**sent: int) -> Allocatable:
    """Of resources `one` and `other`, that the kubelet watches and that the Node says already."""
    allocatable = Allocatable()
    for name, healthy in sent.items():
        resource = {"one": ONE, "other": OTHER}[name]
        allocatable.open(resource)
        allocatable.note_sent(resource, healthy)
    allocatable.note_written(allocatable.due())
    return allocatable


def test_a_patch_names_amounts_as_the_api_does() -> None:
    assert status_patch({OTHER: 0, ONE: 3}) == {
        "status": {"allocatable": {"akri.sh/camera": "3", "akri.sh/camera-8120fe": "0"}}
    }


def test_only_what_changed_is_due_and_only_until_it_is_said() -> None:
    allocatable = watched(one=2, other=5)

    allocatable.note_sent(ONE, 1)
    allocatable.note_sent(OTHER, 5)

    assert allocatable.due() == {ONE: 1}
    assert (allocatable.is_due(ONE), allocatable.is_due(OTHER)) == (True, False)
    allocatable.note_written({ONE: 1})
    assert not allocatable.is_due(ONE)
    assert allocatable.due() == {}


def test_what_changed_back_while_it_was_written_is_due_again() -> None:
    allocatable = watched(one=2)
    allocatable.note_sent(ONE, 1)
    due = allocatable.due()

    allocatable.note_sent(ONE, 2)
    allocatable.note_written(due)

    assert allocatable.due() == {ONE: 2}


def test_a_kubelet_that_watches_anew_counts_anew() -> None:
    """It counted none in between, and may have written that."""
    allocatable = watched(one=2)

    allocatable.close(ONE)
    assert allocatable.due() == {}
    allocatable.open(ONE)
    assert allocatable.due() == {}
    allocatable.note_sent(ONE, 2)

    assert allocatable.due() == {ONE: 2}


def test_nothing_is_promised_for_a_kubelet_that_hung_up() -> None:
    allocatable = watched(one=2)
    allocatable.note_sent(ONE, 3)

    allocatable.close(ONE)

    assert allocatable.due() == {}


def test_a_resource_that_is_no_more_is_said_to_be_none_and_forgotten() -> None:
    allocatable = watched(one=2)
    allocatable.note_sent(ONE, 0)
    allocatable.close(ONE)

    due = allocatable.due()
    allocatable.note_written(due)

    assert due == {ONE: 0}
    assert allocatable.due() == {}
    assert not allocatable.is_pending(ONE, 1)


def test_what_is_doubted_is_said_again() -> None:
    allocatable = watched(one=1)
    assert not allocatable.is_pending(ONE, 1)

    allocatable.invalidate(ONE)

    assert allocatable.is_pending(ONE, 1)
    assert allocatable.due() == {ONE: 1}


def test_a_resource_that_the_kubelet_does_not_watch_lacks_nothing() -> None:
    assert not Allocatable().is_pending(ONE, 1)
