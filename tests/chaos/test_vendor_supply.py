"""Whether a pod that waits for vendors' devices could have them, as the checker counts."""

from __future__ import annotations

import pytest

from tests.chaos import made
from tests.chaos import made_measures as measured
from tests.chaos.made_measures import asking, divided, fans, memory
from tests.chaos.objects import GATE, Object
from tests.chaos.rest_rules import rest_findings

WAITS = made.pod("w", "red", "w")
TOLD = made.told(WAITS, "0/1 nodes are available")
PARTITION = 'device.attributes["gpu.example.com"].type == "partition"'
FITS = {"fits-and-waits"}


def rules(*bodies: Object) -> set[str]:
    return {each.rule for each in rest_findings(made.snapshot(made.configuration(), *bodies))}


def queue(*entries: Object) -> Object:
    return measured.queue("red", *entries)


@pytest.mark.parametrize(
    ("claim", "limit", "found"),
    [
        (asking("w"), "80Gi", FITS),
        (asking("w"), "79Gi", set()),
        (asking("w", "10Gi"), "79Gi", set()),
        (asking("w", "81Gi"), -1, set()),
        (asking("w", count=2), "160Gi", FITS),
        (asking("w", count=2), "159Gi", set()),
        (asking("w", count=3), -1, set()),
        (asking("w", only=PARTITION), -1, set()),
    ],
)
def test_a_device_for_itself_costs_all_that_it_has(
    claim: Object, limit: int | str, found: set[str]
) -> None:
    devices = measured.published("gpu-0", "gpu-1")
    assert rules(queue(memory(limit=limit)), devices, claim, TOLD) == found


@pytest.mark.parametrize(
    ("much", "limit", "found"),
    [
        ("", "20Gi", FITS),
        ("", "19Gi", set()),
        ("11Gi", "20Gi", FITS),
        ("11Gi", "19Gi", set()),
        ("1Gi", "10Gi", FITS),
        ("90Gi", -1, set()),
    ],
)
def test_a_part_of_a_device_costs_what_the_policy_makes_of_it(
    much: str, limit: int | str, found: set[str]
) -> None:
    devices = measured.sliced(divided("gpu-0"))
    assert rules(queue(memory(limit=limit)), devices, asking("w", much), TOLD) == found


@pytest.mark.parametrize(("much", "found"), [("20Gi", FITS), ("21Gi", set())])
def test_others_have_parts_of_a_device(much: str, found: set[str]) -> None:
    user = made.pod("p", "red", "c", on="a")
    other = measured.claim("c", "red", user, part="60Gi")
    red = measured.queue("red", memory(), usage={"gpu-memory": "60Gi"})
    devices = measured.sliced(divided("gpu-0"))
    assert rules(red, devices, user, other, asking("w", much), TOLD) == found


@pytest.mark.parametrize(("counters", "found"), [(4, FITS), (3, set())])
def test_devices_of_one_set_share_its_counters(counters: int, found: set[str]) -> None:
    user = made.pod("p", "red", "c", on="a")
    other = measured.noted(measured.claim("c", "red", user), fans="2")
    red = measured.queue("red", fans(), usage={"fans": "2"})
    devices = measured.published("gpu-0", "gpu-1", fans=counters)
    assert rules(red, devices, user, other, asking("w"), TOLD) == found


def test_a_divided_device_in_use_consumes_no_more_counters() -> None:
    user = made.pod("p", "red", "c", on="a")
    other = measured.noted(measured.claim("c", "red", user, part="10Gi"), fans="2")
    red = measured.queue("red", fans(), usage={"fans": "2"})
    devices = measured.sliced(divided("gpu-0"), fans=2)
    assert rules(red, devices, user, other, asking("w"), TOLD) == FITS


def test_a_gated_pod_is_told_a_reason_that_is_true() -> None:
    gated = {**WAITS, "spec": {**WAITS["spec"], "schedulingGates": [{"name": GATE}]}}
    why = {"type": "moorage.dev/Admitted", "status": "False", "reason": "OverLimit"}
    pod = {**gated, "status": {"phase": "Pending", "conditions": [why]}}
    devices, claim = measured.published("gpu-0"), asking("w")
    assert rules(queue(memory(limit="79Gi")), devices, claim, pod) == set()
    assert rules(queue(memory(limit="80Gi")), measured.published(), claim, pod) == {"false-reason"}


def test_of_a_pod_with_a_choice_only_that_it_is_told_something_is_said() -> None:
    claim = asking("w")
    (request,) = claim["spec"]["devices"]["requests"]
    request["firstAvailable"] = [{"name": "a", **request.pop("exactly")}]
    devices = measured.published("gpu-0")
    assert rules(queue(memory()), devices, claim, WAITS) == {"no-reason"}
    assert rules(queue(memory()), devices, claim, TOLD) == set()


USER = made.pod("p", "blue", "c", on="a")


@pytest.mark.parametrize(
    ("quota", "its", "found"),
    [("20Gi", "0", {"guarantee"}), ("20Gi", "80Gi", set()), ("19Gi", "0", set())],
)
def test_a_queue_below_its_quota_of_memory_gets_a_part_back(
    quota: str, its: str, found: set[str]
) -> None:
    blue = measured.queue("blue", memory(its), usage={"gpu-memory": "80Gi"})
    claim = measured.claim("c", "blue", USER, part="80Gi")
    devices = measured.sliced(divided("gpu-0"))
    waiting = (asking("w", "20Gi"), TOLD)
    assert rules(queue(memory(quota)), blue, devices, claim, USER, *waiting) == found
