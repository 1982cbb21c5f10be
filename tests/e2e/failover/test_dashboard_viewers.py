"""Who looks at the dashboard while the leader is killed sees what is so, or that it is old."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.e2e.failover.stories import KILLED, Story
from tests.e2e.sharing.browsers import Board
from tests.e2e.sharing.viewers import READ, looking

WATCH = """() => {
    window.seen = [];
    const look = () => {
        const { how } = document.getElementById("connection").dataset;
        const notice = document.getElementById("notice");
        const rows = [...document.querySelectorAll("#list .row")].map((row) => row.innerText);
        const found = JSON.stringify([how, notice.hidden ? "" : notice.textContent, rows]);
        if (found !== window.seen.at(-1)) window.seen.push(found);
        requestAnimationFrame(look);
    };
    look();
}"""
"""Keeps each frame that differs from the one before."""


def seen(board: Board) -> list[tuple[str, str, list[str]]]:
    return [tuple(json.loads(frame)) for frame in board.page.evaluate("window.seen")]


def used(rows: list[str]) -> int:
    """What the only row says of a queue's usage."""
    (row,) = rows
    found = re.search(r"(\d+)\s+quota 1, limit 2", row)
    assert found, row
    return int(found[1])


@pytest.fixture
def board(story: Story) -> Iterator[Board]:
    """With a filter on the queue of a pod that is bound, by way of the leader while it is there."""
    vision = story.queue("vision", quota=1, limit=2)
    story.devices(3)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    ports = (story.leader.place.pages_port, story.follower.place.pages_port)
    with looking(story, ports=ports) as viewers:
        found = viewers.board(viewers.token("viewer", *READ))
        found.show("queues", vision)
        found.row("1 quota 1, limit 2")
        yield found
        assert found.errors == []


def test_a_viewer_of_the_leader_that_is_killed_goes_on_with_the_other(
    story: Story, board: Board
) -> None:
    vision = f"vision-{story.name}"
    board.open("1 quota 1, limit 2")
    board.page.evaluate(WATCH)

    story.leader.scheduler.signal(KILLED)
    story.leader.plugin.signal(KILLED)
    board.says("What you see is from before; it is tried again.")
    story.claim("other")
    story.pod("second", vision, "other")
    board.says("This replica is not the elected one")
    story.wait_bound("second")
    board.row("2 quota 1, limit 2")
    board.page.locator("#notice").wait_for(state="hidden", timeout=60_000)

    frames = seen(board)
    figures = [used(rows) for _, _, rows in frames]
    assert figures == sorted(figures), "what is charged is never gone for a moment"
    assert (figures[0], figures[-1]) == (1, 2)
    assert frames[-1][0] == "live"
    assert all("from before" in notice for how, notice, _ in frames if how == "lost")
    board.page.locator("#detail .fact", has_text=re.compile(r"^Usage\s*2$")).wait_for()

    story.claim("more")
    story.pod("third", vision, "more")
    board.show("waiting", namespace=story.namespace)
    board.row("third", "OverLimit")
    assert "would pass its limit of 2" in board.open("third")


def test_a_standby_shows_what_the_leader_did_and_says_what_it_could_not_ask(story: Story) -> None:
    """The replicas of these stories are processes: the Lease names no pod that could be asked."""
    vision, guest = story.queue("vision", quota=1, limit=1), story.queue("guest")
    story.devices(2)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    story.pod("second", guest)
    story.wait_bound("second")
    story.wait_told("shared", "ClaimShared")
    story.claim("more")
    story.pod("third", vision, "more")

    with looking(story, ports=(story.follower.place.pages_port,)) as viewers:
        board = viewers.board(viewers.token("viewer", *READ))
        board.says("This replica is not the elected one, which alone knows places in line.")
        board.show("events", namespace=story.namespace)
        board.row("ClaimShared", "shared")
        board.show("waiting", namespace=story.namespace)
        board.row("third", "OverLimit")
        said = board.open("third")
        assert "would pass its limit of 1" in said
        assert "The leader could not be asked: there is no pod" in said
        assert board.errors == []
