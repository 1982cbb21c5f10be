"""`docs/measures.md`: its Queues are valid, and its fields are those of an entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin.models import queue_problems
from scheduler_plugin.objects.api import parse_queue
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.share_models import Share
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_request,
    a_result,
    a_world,
    refusal,
    their_class,
)

GPU = "gpu.example.com"
PAGE = (Path(__file__).parent.parent / "docs" / "measures.md").read_text()
QUEUES: list[Any] = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue["metadata"]["name"])
def test_each_queue_of_the_page_is_valid_and_understood(queue: Any) -> None:
    assert queue_problems(queue) == ()
    assert parse_queue(queue).misread == ()
    assert all(share.definition is not None for share in parse_queue(queue).shares.values())


def test_the_page_says_what_each_field_of_an_entry_means() -> None:
    rows = set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))))

    fields = {field.alias for field in Share.model_fields.values()} - {"overQuotaWeight"}
    assert fields - {"measure"} | {"measure.capacity", "measure.counter"} <= rows
    assert len(QUEUES) == 4


def a_part(name: str, namespace: str, device: str, memory: str) -> ClaimView:
    """A claim of vision that has a part of a GPU."""
    part: dict[str, Any] = {"consumedCapacity": {"memory": memory}, "shareID": name}
    result = a_result(driver=GPU, pool="node-a", device=device, **part)
    asked = {"requests": [a_request(GPU)], "results": [result], "pods": [name]}
    return a_claim(name, namespace=namespace, queue="vision", **asked)


def test_the_refusal_of_the_page_is_that_of_bind() -> None:
    (vision,) = [parse_queue(each) for each in QUEUES if each["metadata"]["name"] == "vision"]
    used, wanted = a_part("used", "lab", "gpu-2", "140Gi"), a_part("train", "lab", "gpu-3", "40Gi")
    pod = a_pod("train", namespace="lab", queue="vision", claims=["train"])
    gpus = their_class(GPU, f"device.driver == '{GPU}'")
    world = a_world(vision, gpus, used, wanted, pod, namespaces=["lab"])

    found = refusal(world, pod, at_bind=True).sentence

    assert found.replace(" Entry", "\nEntry") in PAGE
