"""What a node says of its handlers in the status of a Configuration."""

from __future__ import annotations

from driver.api import NodeName
from driver.handlers.registrations import HandlerState
from driver.handlers.status_entries import (
    LONGEST_MESSAGE,
    Report,
    entry_of,
    incomplete,
    status_apply,
    unread_properties,
    unregistered,
    without_lost_nodes,
)
from tests.driver.builders import NODE, NOW

WAITING, ACTIVE, OFFLINE = HandlerState


def test_nothing_is_said_when_all_is_well() -> None:
    assert entry_of(NODE, "udev", [Report(ACTIVE), Report(ACTIVE)]) is None


def test_no_handler_at_all_is_waiting() -> None:
    assert entry_of(NODE, "uDev", []) == {
        "name": NODE,
        "handler": "Waiting",
        "message": 'No discovery handler "uDev" is registered.',
        "registered": False,
    }


def test_nodes_that_know_no_handler_are_named() -> None:
    entries = {f"n{i}": entry_of(NodeName(f"n{i}"), "shelf", []) or {} for i in range(5)}
    entries["n0"] = {"name": "n0", "handler": "Offline"}

    told = 'No discovery handler "shelf" is registered on n1, n2, n3 and 1 more.'
    assert unregistered("shelf", entries) == told
    assert unregistered("shelf", {"n0": entries["n0"]}) is None


def test_the_worst_state_is_told_with_all_problems() -> None:
    reports = [
        Report(ACTIVE, problem="One."),
        Report(OFFLINE, NOW, "Two."),
        Report(WAITING),
        Report(OFFLINE, NOW, "Two."),
    ]

    assert entry_of(NODE, "udev", reports) == {
        "name": NODE,
        "handler": "Offline",
        "since": "2026-11-21T12:00:00Z",
        "message": "One. Two.",
        "devicesComplete": False,
    }


def test_a_problem_of_an_active_handler_is_told_and_cut() -> None:
    entry = entry_of(NODE, "udev", [Report(ACTIVE, problem="x" * 5000)])

    said = {"message": "x" * LONGEST_MESSAGE, "devicesComplete": False}
    assert entry == {"name": NODE, "handler": "Active", **said}


def test_what_is_no_handlers_problem_is_told_first() -> None:
    entry = entry_of(NODE, "onvif", [Report(ACTIVE, problem="Two.")], ("One.", "One."))

    said = {"message": "One. Two.", "devicesComplete": False}
    assert entry == {"name": NODE, "handler": "Active", **said}


def test_devices_that_are_left_out_are_marked_and_other_problems_are_not() -> None:
    well = [Report(ACTIVE)]

    left_out = entry_of(NODE, "shelf", well, left_out=("Two are left out.",))
    assert left_out is not None
    assert left_out["devicesComplete"] is False
    assert left_out["message"] == "Two are left out."
    assert "devicesComplete" not in (entry_of(NODE, "shelf", well, ("One.",)) or {})


def test_nodes_that_say_the_same_are_told_together_and_not_too_many() -> None:
    def said(message: str) -> dict[str, object]:
        return {"message": message, "devicesComplete": False}

    same = {f"n{i}": said("It answers 401.") for i in range(5)}
    assert incomplete(same) == "n0, n1, n2 and 2 more: It answers 401."
    assert incomplete({"n9": {"message": "No."}}) == ""
    different = {f"n{i}": said(f"{i}.") for i in range(5)}
    assert incomplete(different) == "n0: 0. n1: 1. n2: 2. 2 more nodes report other problems."


def test_what_is_no_handlers_problem_is_told_where_none_is_registered_too() -> None:
    assert entry_of(NODE, "none", [], ("One.",)) == {
        "name": NODE,
        "registered": False,
        "handler": "Waiting",
        "message": 'One. No discovery handler "none" is registered.',
    }


def test_a_condition_names_some_nodes_and_says_what_the_first_does() -> None:
    entries = {
        f"n{i}": {"name": f"n{i}", "message": f"{i}.", "propertiesRead": False} for i in range(5)
    }

    assert unread_properties(entries) == "n0, n1, n2 and 2 more: 0."
    assert unread_properties({"n4": entries["n4"], "n5": {"name": "n5"}}) == "n4: 4."
    assert unread_properties({"n5": {"name": "n5", "message": "Gone."}}) is None


def test_an_entry_that_is_taken_back_is_left_out() -> None:
    entry = {"name": NODE, "handler": "Waiting", "message": ""}

    assert status_apply("default", "shelf", "uid", entry)["status"] == {"nodes": [entry]}
    assert "status" not in status_apply("default", "shelf", "uid", None)


def test_what_lost_nodes_said_is_taken_away() -> None:
    entries = {name: {"name": name, "handler": "Waiting"} for name in (NODE, "node-z")}

    assert without_lost_nodes(entries, [NODE]) == [entries[NODE]]
    assert without_lost_nodes({NODE: entries[NODE]}, [NODE]) is None
    assert without_lost_nodes({}, []) is None
