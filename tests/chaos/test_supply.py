"""What there is of devices, as the checker sees it."""

from __future__ import annotations

from typing import Any

from tests.chaos.objects import Snapshot
from tests.chaos.supply import asks_for_what_is_gone


def test_a_pod_with_a_slot_waits_for_a_configuration_that_is_gone() -> None:
    container = {"name": "main", "resources": {"limits": {"akri.sh/camera": "1", "cpu": "1"}}}
    pod = {"spec": {"containers": [{"name": "other"}, container]}}
    there: dict[Any, Any] = {("default", "camera"): {}}

    assert asks_for_what_is_gone(pod, Snapshot({"configurations": {}}))
    assert not asks_for_what_is_gone(pod, Snapshot({"configurations": there}))
