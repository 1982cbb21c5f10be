"""A viewer of the dashboard sees what is so, or that it is old, whichever process is killed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from local_cluster.api import Cluster
from local_cluster.component_handles import ComponentProcess
from tests.e2e.failover.installation import LEASE, NAMESPACE, SCHEDULER
from tests.e2e.failover.replicas import Replicas
from tests.e2e.failover.stories import KILLED, Story
from tests.e2e.sharing import dashboards
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


@pytest.fixture(scope="module")
def both_dashboards(cluster: Cluster, both: Replicas) -> Iterator[tuple[ComponentProcess, ...]]:
    """Two replicas of the dashboard, one on each node of the schedulers."""
    nodes = [replica.node for replica in both]
    flags = ("--scheduler-name", SCHEDULER)
    lease, hosts = f"{NAMESPACE}/{LEASE}", [(node, node) for node in nodes]
    with ExitStack() as stack:
        stack.enter_context(dashboards.leaders_pods(cluster, lease, hosts))
        found = (dashboards.running(cluster, *flags, node=node) for node in nodes)
        yield tuple(stack.enter_context(one) for one in found)


@pytest.fixture
def board(story: Story, both_dashboards: tuple[ComponentProcess, ...]) -> Iterator[Board]:
    """With a filter on the queue of a pod that is bound, by way of the first that is there."""
    for one in both_dashboards:
        one.start()
        one.wait_ready()
    vision = story.queue("vision", quota=1, limit=2)
    story.devices(3)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    ports = tuple(dashboards.port_on(replica.node) for replica in story.replicas)
    with looking(story, ports=ports) as viewers:
        found = viewers.board(viewers.token("viewer", *READ))
        found.show("queues", vision)
        found.row("1 quota 1, limit 2")
        yield found
        assert found.errors == []


def charged_more(story: Story, board: Board) -> list[tuple[str, str, list[str]]]:
    """Bind a second pod, wait until it is shown, and return what was seen meanwhile."""
    story.claim("other")
    story.pod("second", f"vision-{story.name}", "other")
    story.wait_bound("second")
    board.row("2 quota 1, limit 2")
    board.page.locator("#notice").wait_for(state="hidden")
    frames = seen(board)
    figures = [used(rows) for _, _, rows in frames]
    assert figures == sorted(figures), "what is charged is never gone for a moment"
    assert (figures[0], figures[-1]) == (1, 2)
    assert frames[-1][0] == "live"
    board.page.locator("#detail .fact", has_text=re.compile(r"^Usage\s*2$")).wait_for()
    return frames


def test_while_another_scheduler_is_elected_a_viewer_sees_what_is_charged(
    story: Story, board: Board
) -> None:
    board.open("1 quota 1, limit 2")
    board.page.evaluate(WATCH)

    story.leader.scheduler.signal(KILLED)
    story.leader.plugin.signal(KILLED)
    frames = charged_more(story, board)

    assert "lost" not in {how for how, _, _ in frames}
    story.claim("more")
    story.pod("third", f"vision-{story.name}", "more")
    board.show("waiting", namespace=story.namespace)
    board.row("third", "OverLimit")
    assert "would pass its limit of 2" in board.open("third")
    story.pod("guest", story.queue("guest"))
    story.wait_told("shared", "ClaimShared")
    board.show("events", namespace=story.namespace)
    board.row("ClaimShared", "shared")


def test_a_viewer_of_a_dashboard_that_is_killed_goes_on_with_the_other(
    story: Story, board: Board, both_dashboards: tuple[ComponentProcess, ...]
) -> None:
    board.open("1 quota 1, limit 2")
    board.page.evaluate(WATCH)

    both_dashboards[0].signal(KILLED)
    board.says("What you see is from before; it is tried again.")
    frames = charged_more(story, board)

    assert all("from before" in notice for how, notice, _ in frames if how == "lost")
