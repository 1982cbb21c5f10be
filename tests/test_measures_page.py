"""`docs/measures.md`: its Queues are valid, and its fields are those of an entry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin.models import queue_problems
from scheduler_plugin.objects.api import parse_queue
from scheduler_plugin.share_models import Share

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
