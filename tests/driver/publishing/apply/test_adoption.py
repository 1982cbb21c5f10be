"""Adoption of what the API server made of a slice."""

from __future__ import annotations

from typing import Any

import pytest

from driver.publishing.apply.adoption import adopt, holds
from driver.publishing.apply.resource_slices import SliceContent, slice_content

TAINT = {"key": "k", "effect": "NoSchedule"}


def content(*devices: dict[str, Any], **spec: Any) -> SliceContent:
    return slice_content({"allNodes": True, "devices": list(devices), **spec})


WANTED = content({"name": "a", "taints": [TAINT]})
STORED = content({"name": "a"})


def test_a_slice_that_was_stored_as_wanted_leaves_nothing_to_remember() -> None:
    stored = content({"name": "a", "taints": [{**TAINT, "timeAdded": "2026-11-21T12:00:00Z"}]})

    assert adopt({}, 0, WANTED, stored) == {}


def test_what_became_of_a_slice_is_as_good_as_what_was_wanted() -> None:
    adopted = adopt({}, 0, WANTED, STORED)

    assert holds(adopted, 0, WANTED, STORED)
    assert not holds({}, 0, WANTED, STORED)


@pytest.mark.parametrize(
    ("index", "wanted", "stored"),
    [
        (1, WANTED, STORED),
        (0, content({"name": "b", "taints": [TAINT]}), STORED),
        (0, WANTED, content({"name": "b"})),
        (0, WANTED, content({"name": "a"}, nodeName="x")),
    ],
)
def test_nothing_else_is(index: int, wanted: SliceContent, stored: SliceContent) -> None:
    assert not holds(adopt({}, 0, WANTED, STORED), index, wanted, stored)


def test_a_slice_is_remembered_only_as_it_was_written_last() -> None:
    other = content({"name": "b", "taints": [TAINT]})
    once = adopt({}, 0, WANTED, STORED)

    twice = adopt(once, 0, other, content({"name": "b"}))

    assert not holds(twice, 0, WANTED, STORED)
    assert not adopt(once, 0, other, other)
