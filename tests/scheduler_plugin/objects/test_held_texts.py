"""What conditions say of holds is read back as it was written, and any other text says nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.held_texts import (
    Held,
    held_text,
    missed_text,
    read_held,
    read_missed,
)

labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
domains = st.lists(labels, min_size=1, max_size=3).map(".".join)
pools = st.lists(domains, min_size=1, max_size=3).map("/".join)
devices = st.builds(DeviceId, domains, pools, labels)
moments = st.integers(1_700_000_000, 1_900_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))


@given(
    held=st.dictionaries(devices, st.integers(1, 99), min_size=1, max_size=5),
    node=domains | st.just(""),
    before=st.text(max_size=60),
)
def test_what_is_held_is_read_back(held: dict[DeviceId, int], node: str, before: str) -> None:
    slots = (("akri.sh/camera", 2),) if before else ()
    what = Held(tuple(held.items()), slots, node)

    assert what == Held() or read_held(f"{before} {held_text(what)}") == what


def test_room_without_a_device_is_read_back_as_none() -> None:
    assert held_text(Held()) == ""
    assert read_held(held_text(Held(node="node-a"))) == Held(node="node-a")


@pytest.mark.parametrize(
    "text",
    ["", "What an earlier version wrote.", 'Held: a/b/c (1) on node "n". And more.', "Held: "],
)
def test_other_text_says_nothing(text: str) -> None:
    assert read_held(text) is None


@given(nodes=st.dictionaries(domains | st.just(""), moments, max_size=4))
def test_missed_nodes_are_read_back(nodes: dict[str, datetime]) -> None:
    found = dict(read_missed(missed_text(nodes)))

    assert found == nodes


def test_a_time_that_cannot_be_read_leaves_no_node_out() -> None:
    said = 'Left out: "a" until 2026-13-01T00:00:00Z, "b" until 2026-01-01T00:00:00, "c" until -.'

    assert [*read_missed(said)] == []
