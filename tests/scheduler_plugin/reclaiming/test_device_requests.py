"""What a claim asks of a device: its view says what reading it from the API server said."""

from __future__ import annotations

from typing import Any

import pytest

from kube.shapes.selection import Toleration
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import Alternative
from scheduler_plugin.objects.names import QUEUE_LABEL
from scheduler_plugin.reclaiming.placement.offers import (
    Constraint,
    DeviceCriteria,
    criteria_of,
)
from tests.scheduler_plugin.builders import a_choice, a_claim_object, a_request

CLASS_SELECTORS = ("device.driver == 'moorage.dev'",)
SELECTORS = [{"cel": {"expression": "true"}}, {}]
NUMA, ROOT = {"matchAttribute": "a.b/numa"}, {"matchAttribute": "a.b/root"}
DISTINCT = {"distinctAttribute": "a.b/x"}
ALL = {"allocationMode": "All"}
MEMORY = {"requests": {"memory": "1Gi"}}
BOTH = {"requests": {"memory": "1Gi", "slots": "2"}}


def a_claim_with(requests: list[Any], constraints: list[Any]) -> Any:
    obj = a_claim_object(requests=requests)
    obj["spec"]["devices"]["constraints"] = constraints
    return obj


def asked(obj: Any, request: int = 0, choice: int = 0) -> DeviceCriteria:
    """By the view of a claim."""
    claim = claim_view(obj, queue_label=QUEUE_LABEL)
    return criteria_of(claim, claim.requests[request].alternatives[choice], CLASS_SELECTORS)


def _expressions(exactly: Any) -> tuple[str | None, ...]:
    return tuple(each.get("cel", {}).get("expression") for each in exactly.get("selectors", ()))


def device_request(claim: Any, alternative: Alternative) -> DeviceCriteria:
    """The same, read from the claim as the API server has it."""
    devices, names = claim["spec"]["devices"], alternative.name.split("/")
    (request,) = (each for each in devices["requests"] if each["name"] == names[0])
    choices = request.get("firstAvailable", ())
    exactly = next((each for each in choices if each["name"] == names[-1]), request.get("exactly"))
    about = {alternative.name, names[0]}
    return DeviceCriteria(
        selectors=(CLASS_SELECTORS, _expressions(exactly)),
        slots=alternative.slots,
        names_slots="capacity" in exactly,
        tolerations=tuple(Toleration(**each) for each in exactly.get("tolerations") or ()),
        constraints=tuple(
            Constraint(number, each["matchAttribute"])
            for number, each in enumerate(devices["constraints"])
            if not each.get("requests") or about & set(each["requests"])
        ),
    )


@pytest.mark.parametrize(
    ("requests", "constraints"),
    [
        ([a_request()], []),
        ([a_request(selectors=SELECTORS)], []),
        ([a_request(slots=3, tolerations=[{"operator": "Exists"}])], []),
        ([a_request(name="x", count=2), a_request()], [NUMA, {"requests": ["x"], **ROOT}]),
        ([a_choice(a_request(name="x", slots=2), a_request(name="y"))], [NUMA]),
        (
            [a_choice(a_request(name="x"), a_request(name="y"))],
            [{"requests": ["req/y"], **NUMA}, {"requests": ["req"], **ROOT}],
        ),
        ([a_request(**ALL)], []),
    ],
)
def test_it_is_what_the_claim_in_full_says(requests: list[Any], constraints: list[Any]) -> None:
    obj = a_claim_with(requests, constraints)
    claim = claim_view(obj, queue_label=QUEUE_LABEL)
    alternatives = [each for request in claim.requests for each in request.alternatives]

    found = [criteria_of(claim, each, CLASS_SELECTORS) for each in alternatives]

    assert found == [device_request(obj, each) for each in alternatives]


@pytest.mark.parametrize(
    ("request_fields", "constraints", "numbered", "names_slots"),
    [
        ({"capacity": MEMORY}, [], (), False),
        ({"capacity": BOTH}, [], (), False),
        ({"slots": "2"}, [DISTINCT, NUMA], (Constraint(1, "a.b/numa"),), True),
        (ALL, [NUMA], (), False),
    ],
)
def test_what_is_not_modelled_is_assumed_to_fit(
    request_fields: Any, constraints: Any, numbered: tuple[Constraint, ...], names_slots: bool
) -> None:
    obj = a_claim_with([a_request(**request_fields)], constraints)

    found = asked(obj)

    assert (found.constraints, found.names_slots) == (numbered, names_slots)
