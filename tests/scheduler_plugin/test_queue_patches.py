"""What is written of a Queue's status, and what is left as it is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.names import QueueCondition
from scheduler_plugin.queue_patches import status_patch

ACCEPTED = {"type": "Accepted", "status": "True", "reason": "Valid", "message": "In force."}
FOREIGN = {"type": "example.com/Audited", "status": "True", "reason": "Seen", "message": ""}


def a_status(*conditions: dict[str, str], **figures: Any) -> dict[str, Any]:
    return {"observedGeneration": 1, **figures, "conditions": list(conditions)}


def merged(stored: Any, patch: Any) -> Any:
    """RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(stored) if isinstance(stored, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def test_only_the_figure_that_changed_is_written() -> None:
    stored = a_status(ACCEPTED, usage={"onvif": 1, "gpu": 2}, claims={"owned": 1, "sharedOut": 0})
    wanted = a_status(ACCEPTED, usage={"onvif": 2, "gpu": 2}, claims={"owned": 1, "sharedOut": 0})

    patch = status_patch(wanted, stored)

    assert patch.fields == {"usage": {"onvif": 2}}
    assert not patch.replaces_conditions


def test_class_that_is_used_no_more_is_removed() -> None:
    stored = a_status(ACCEPTED, usage={"onvif": 1, "gpu": 2}, requested={"onvif": 1})
    wanted = a_status(ACCEPTED, usage={"onvif": 1})

    patch = status_patch(wanted, stored)

    assert patch.fields == {"usage": {"gpu": None}, "requested": None}


def test_conditions_of_other_writers_stay() -> None:
    stored = a_status(FOREIGN, {**ACCEPTED, "status": "False"})

    patch = status_patch(a_status(ACCEPTED), stored)

    assert patch.fields == {"conditions": [FOREIGN, ACCEPTED]}
    assert patch.replaces_conditions


amounts = st.dictionaries(st.sampled_from(["onvif", "gpu", "fpga"]), st.integers(0, 3), min_size=1)
figures = st.fixed_dictionaries(
    {"observedGeneration": st.integers(1, 3)},
    optional=dict.fromkeys(("usage", "usageNonPreemptible", "requested", "claims"), amounts),
)
conditions = st.lists(
    st.builds(
        lambda kind, status: {**ACCEPTED, "type": str(kind), "status": status},
        st.sampled_from(list(QueueCondition)),
        st.sampled_from(["True", "False"]),
    ),
    unique_by=lambda condition: condition["type"],
)


@given(figures, conditions, figures, conditions, st.booleans())
def test_patch_turns_what_is_stored_into_what_is_wanted(
    stored: dict[str, Any],
    before: list[dict[str, str]],
    wanted: dict[str, Any],
    after: list[dict[str, str]],
    is_shared: bool,
) -> None:
    others = [FOREIGN] if is_shared else []
    found = {**stored, "conditions": [*before, *others]}

    patch = status_patch({**wanted, "conditions": after}, found)

    result = merged(found, patch.fields)
    by_type = {condition["type"]: condition for condition in result["conditions"]}
    assert {**result, "conditions": ()} == {**wanted, "conditions": ()}
    assert by_type == {condition["type"]: condition for condition in [*after, *others]}


@given(figures, conditions)
def test_nothing_is_written_over_what_is_stored_already(
    status: dict[str, Any], found: list[dict[str, str]]
) -> None:
    stored = {**status, "conditions": found}

    assert status_patch(stored, stored).fields == {}
