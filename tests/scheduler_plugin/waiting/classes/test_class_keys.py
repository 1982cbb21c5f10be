"""Signatures of pods that wait: equal for pods that every verdict treats alike."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.waiting.classes.pod_classes import class_key_of
from tests.scheduler_plugin.builders import a_claim, a_pod, a_queue, a_request, a_world, pod_uid

PLAIN, FINE = ([{"cel": {"expression": f"device.driver == '{name}'"}}] for name in "ab")
BEARS_ALL = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("other", "are_alike"),
    [
        ({"selectors": PLAIN}, True),
        ({"selectors": FINE}, True),
        ({"selectors": PLAIN, "tolerations": BEARS_ALL}, True),
        ({"selectors": PLAIN, "capacity": {"requests": {"memory": "1Gi"}}}, False),
        ({}, True),
        ({"selectors": PLAIN, "count": 2}, False),
    ],
)
def test_pods_whose_claims_select_other_devices_of_a_class_stand_in_one_line(
    other: Any, are_alike: bool
) -> None:
    one, two = [a_request(selectors=PLAIN)], [a_request(**other)]
    world = a_world(
        a_queue("q"),
        a_claim("c1", requests=one),
        a_claim("c2", requests=two),
        a_pod("a", queue="q", claims=["c1"]),
        a_pod("b", queue="q", claims=["c2"]),
    )

    found = [world.facts.pod(pod_uid(name)) for name in "ab"]
    first, second = (class_key_of(pod, world.facts) for pod in found if pod is not None)

    assert (first == second) is are_alike
    assert len({first, second}) == (1 if are_alike else 2)
