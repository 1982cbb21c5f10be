"""The dashboard in a real browser: who has which device, who pays, and what waits."""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from local_cluster.component_handles import ComponentProcess
from tests.e2e.driver.stories import Story as DriverStory
from tests.e2e.sharing import browsers, dashboards, objects
from tests.e2e.sharing.browsers import PORT, Board
from tests.e2e.sharing.installation import LEASE, NODE
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import NODE as FAKE_NODE
from tests.e2e.sharing.stories import Story
from tests.e2e.sharing.viewers import READ, Viewers, looking

TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def dashboard(plugin: Plugin) -> Iterator[ComponentProcess]:
    """The dashboard as a process, ready; the leader is found by a pod of its host's name."""
    cluster, hosts = plugin.cluster, [(socket.gethostname(), NODE)]
    with (
        dashboards.leaders_pods(cluster, LEASE, hosts),
        dashboards.running(cluster, "--lease", LEASE) as found,
    ):
        yield found


@pytest.fixture
def viewers(story: Story, dashboard: ComponentProcess) -> Iterator[Viewers]:
    with looking(story) as found:
        yield found


def told(story: Story) -> tuple[str, str]:
    """The demo's situation: two queues share a device, a third pod waits; payer and guest."""
    payer = story.queue("payer", quota=1, limit=1)
    guest = story.queue("guest")
    story.devices(2)
    story.claim()
    story.pod("first", payer)
    story.wait_bound("first")
    story.pod("second", guest)
    story.wait_bound("second")
    assert guest in story.wait_told("shared", "ClaimShared")
    story.claim("more")
    story.pod("third", payer, "more")
    return payer, guest


def test_who_shares_who_pays_and_what_waits_is_seen(story: Story, viewers: Viewers) -> None:
    payer, guest = told(story)
    sentence = story.wait_refused("third", "OverLimit")
    board = viewers.board(viewers.token("viewer", *READ))
    board.says("live")

    board.show("queues", payer)
    assert "1 quota 1, limit 1" in board.row(payer, story.name)
    assert "1 waiting" in board.row(payer)
    past = board.open(payer)
    assert all(text in past for text in ("Fair share", "The last hours"))

    board.show("claims", namespace=story.namespace)
    shared = board.row("shared", f"{payer} 1", f"{guest} 1")
    assert f"1 {story.name}" in shared
    said = board.open("shared", payer)
    assert f"{story.namespace}/second" in said
    assert "uses it for free" in said

    board.show("devices", namespace="", text=f"{story.namespace}/shared")
    assert FAKE_NODE in board.row("shared", "Ready")

    board.show("waiting", namespace=story.namespace)
    assert "OverLimit" in board.row("third")
    why = board.open("third")
    assert why.partition("\n")[0] == "Pod"
    assert sentence.partition(": ")[2] in why or "would pass its limit of 1" in why
    what_the_plugin_knows_is_told(story, board)
    everything_is_reached_by_keys(story, board)
    names_with_html_are_read_as_names(story, viewers)


def what_the_plugin_knows_is_told(story: Story, board: Board) -> None:
    """Of the pod that is open."""
    expect(board.page.locator("#notice")).to_be_hidden()
    known = json.loads(story.plugin.page(f"/waiting/{story.namespace}/third"))
    said = board.page.locator("#detail-body").inner_text()
    assert (f"{known['place']} of {known['waiting']} pods" in said) is (known["place"] is not None)
    assert "not known" not in said


def everything_is_reached_by_keys(story: Story, board: Board) -> None:
    page, detail = board.page, board.page.locator("#detail")
    page.keyboard.press("Escape")
    detail.wait_for(state="hidden")
    page.keyboard.press("2")
    page.keyboard.press("/")
    page.keyboard.type("shared")
    board.row("shared")
    page.locator("#list:not([aria-busy=true])").wait_for()
    page.keyboard.press("Escape")
    # The box is emptied by it, and the filter goes with what it said.
    board.row("more")
    for key in ("ArrowDown", "Enter"):
        page.keyboard.press(key)
    detail.get_by_text(f"{story.namespace}/more").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "close"
    page.keyboard.press("Enter")
    detail.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.id") == "list"
    page.keyboard.press("1")
    page.keyboard.press("/")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(story.name)
    board.row("quota 1, limit 1")
    assert board.errors == []


HOSTILE = "<img src=x onerror=alert(1)>"


def names_with_html_are_read_as_names(story: Story, viewers: Viewers) -> None:
    """Kubernetes has none; where something else on the way puts them in, they stay text."""
    page = viewers.new_page()
    for path in ("rows", "claims", "pods"):
        page.route(f"**/api/{path}/**", partial(spoil, story.cluster.node(NODE).address))
    board = Board(page, viewers.url)
    board.sign_in(viewers.token("victim", *READ))
    for part, name in (("queues", story.name), ("claims", "shared"), ("waiting", "third")):
        board.show(part, name)
        assert HOSTILE in board.row(HOSTILE)
        if part != "queues":
            assert HOSTILE in board.open(HOSTILE)
    assert page.locator("img").count() == 0
    assert board.errors == []


def spoil(address: str, route: Route) -> None:
    """Put HTML into every text of an answer but those by which it is asked for.

    The browser alone takes the node for this machine, so the node is named here.
    """
    there = route.request.url.replace("localhost", address, 1)
    asked = {**route.request.headers, "host": f"localhost:{PORT}"}
    answer = route.fetch(url=there, headers=asked)
    route.fulfill(response=answer, json=spoiled(answer.json()))


def spoiled(found: Any, key: str = "") -> Any:
    if isinstance(found, dict):
        return {name: spoiled(value, name) for name, value in found.items()}
    if isinstance(found, list):
        return [spoiled(value, key) for value in found]
    asked_for = key in ("namespace", "name", "device_class", "at")
    return found if asked_for or not isinstance(found, str) else f"{HOSTILE}{found}"


SIZES = {"wide": (1200, 640), "tablet": (900, 640), "phone": (390, 780)}
PARTS = {
    "queues": "vision",
    "claims": "camera-7",
    "devices": "",
    "waiting": "trainer",
    "events": "",
}


def test_pictures(story: Story, viewers: Viewers, tmp_path: Path) -> None:
    """Light, dark and on a phone; `make screenshots` keeps what it looked like."""
    shown_in(story)
    token = viewers.token("ada", *READ)
    kept = Path(os.environ.get("MOORAGE_SCREENSHOTS") or tmp_path)
    for scheme, size in itertools.product(("light", "dark"), SIZES):
        folder = tmp_path if size == "tablet" else kept
        width, height = SIZES[size]
        viewport = {"width": width, "height": height}
        board = Board(viewers.new_page(color_scheme=scheme, viewport=viewport), viewers.url)
        board.page.screenshot(path=folder / f"dashboard-sign-in-{scheme}-{size}.png")
        board.sign_in(token)
        board.says("live")
        for part, opened in PARTS.items():
            board.show(part)
            board.settle()
            board.page.screenshot(path=folder / f"dashboard-{part}-{scheme}-{size}.png")
            assert board.is_inside()
            if opened:
                board.open(opened)
                assert board.is_inside()
                board.page.screenshot(path=folder / f"dashboard-{part}-open-{scheme}-{size}.png")
                board.page.keyboard.press("Escape")
        assert board.errors == []
        board.page.close()
    assert all(path.stat().st_size < 200_000 for path in kept.glob("dashboard-*.png"))


def shown_in(story: Story) -> None:
    """Two teams that share cameras, a guest who had to go, and a pod that wants too much."""
    story.name, story.namespace = "cameras", "factory"
    story.begin()
    share = {"cameras": {"quota": 3, "limit": 4}}
    sharing = {"claimSharing": {"ownerExitGracePeriod": "0s"}}
    queues = (
        objects.queue("research", parent="", shares={"cameras": {"quota": 4, "limit": 6}}),
        objects.queue("vision", parent="research", shares=share, **sharing),
        objects.queue("robots", parent="research", shares={"cameras": {"quota": 1, "limit": 2}}),
    )
    for queue in queues:
        story.create("queue", queue)
        story.unseen.append(queue["metadata"]["name"])
    story.devices(8)
    for number in (5, 6, 7):
        story.claim(f"camera-{number}")
        story.pod(f"recorder-{number}", "vision", f"camera-{number}")
        story.wait_bound(f"recorder-{number}")
    for name, camera in (("visitor", 5), ("detector", 7), ("tracker", 7)):
        story.pod(name, "robots", f"camera-{camera}")
        story.wait_bound(name)
    story.patch("claim", "camera-5", {"metadata": {"annotations": {objects.EVICT_FOREIGN: "true"}}})
    story.delete("pod", "recorder-5")
    story.until("the visitor is evicted", lambda: "visitor" not in story.bound())
    story.delete("claim", "camera-5")
    story.claim("camera-8")
    story.pod("arm", "robots", "camera-8")
    story.wait_bound("arm")
    story.claim("all-others", count=3)
    story.pod("trainer", "vision", "all-others")
    story.wait_refused("trainer", "OverLimit")


def test_a_change_is_seen_without_asking(story: Story, viewers: Viewers) -> None:
    payer = story.queue("payer", quota=2, limit=2)
    story.devices(1)
    board = viewers.board(viewers.token("viewer", *READ))
    board.show("claims", namespace=story.namespace)
    board.says("No row matches the filter.")

    story.claim()
    board.row("shared", "not allocated")
    story.pod("first", payer)
    board.row("shared", f"{payer} 1")
    assert board.errors == []


def test_escape_takes_the_filter_off_and_tabs_say_how_much_there_is(
    story: Story, viewers: Viewers
) -> None:
    payer = story.queue("payer", quota=0, limit=0)
    story.devices(1)
    story.claim()
    for number in range(6):
        story.pod(f"waits-{number}", payer)
    board = viewers.board(viewers.token("viewer", *READ))
    board.show("waiting", namespace=story.namespace)
    page, rows = board.page, board.page.locator("#list .row:not(.loading)")
    expect(rows).to_have_count(6)
    there = page.locator("#tab-waiting .total")
    before = there.inner_text()

    page.keyboard.press("/")
    page.keyboard.type("no-such-pod")
    board.says(f"No row matches the filter. Without it there are {before}.")
    expect(there).to_have_text(before)
    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("")
    expect(rows).to_have_count(6)
    expect(page.locator("#empty")).to_be_hidden()

    page.keyboard.press("/")
    page.keyboard.type("waits-3")
    expect(rows).to_have_count(1)
    expect(there).to_have_text(before)
    expect(page.locator("#count")).to_have_text(f"1 of {before} rows")
    assert board.errors == []


def test_a_device_that_is_pulled_says_since_when_and_where_it_was(
    story: Story, disk: DriverStory, viewers: Viewers
) -> None:
    payer = story.queue("payer", quota=1, limit=1)
    story.claim()
    story.pod("holder", payer, **objects.on(NODE))
    story.wait_running("holder")
    board = viewers.board(viewers.token("viewer", *READ))
    holder = f"{story.namespace}/shared"
    board.show("devices", story.name)
    board.row(holder, NODE, "Ready")

    disk.unplug(disk.disks[0])
    board.row(holder, "Offline")
    board.show("devices", f"{story.name} offline noschedule {NODE}")
    board.row(holder, f"no longer on {NODE}")
    since = board.page.locator("#list .row time").first.get_attribute("title")
    assert datetime.now(UTC) - datetime.fromisoformat(since or "") < timedelta(minutes=5)
    said = board.open(holder)
    assert "moorage.dev/offline:NoSchedule" in said
    assert f"no longer on {NODE}" in said
    board.show("devices", f"{story.name} ready")
    board.says("No row matches the filter. Without it there")
    assert board.errors == []


def test_a_device_says_what_it_is_tainted_by(story: Story, viewers: Viewers) -> None:
    payer = story.queue("payer", quota=1, limit=1)
    story.devices(1)
    story.claim()
    story.pod("first", payer)
    story.wait_bound("first")
    (found,) = (one for one in story.all("slice") if one["spec"]["driver"] == story.driver)
    worn = {"key": "example.com/worn", "value": "much", "effect": "NoSchedule"}
    devices = [{**device, "taints": [worn]} for device in found["spec"]["devices"]]
    story.patch("slice", found["metadata"]["name"], {"spec": {"devices": devices}})

    board = viewers.board(viewers.token("viewer", *READ))
    board.show("devices", f"example.com/worn {story.name}")
    board.row(f"{story.namespace}/shared", "Tainted")
    assert "example.com/worn=much:NoSchedule" in board.open("Tainted")
    assert board.errors == []


@contextmanager
def held_back(page: Page, pattern: str) -> Iterator[None]:
    """Let no request pass before the end."""
    held, is_over = list[Route](), False

    def meet(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            held.append(route)

    page.route(pattern, meet)
    yield
    is_over = True
    for route in held:
        route.continue_()


def test_enter_on_a_row_that_still_loads_opens_it_once_it_is_there(
    story: Story, viewers: Viewers
) -> None:
    story.devices(1)
    story.claim()
    board = viewers.board(viewers.token("viewer", *READ))
    page = board.page
    board.show("queues", namespace=story.namespace)
    board.settle()
    with held_back(page, "**/api/rows/claims?**"):
        board.show("claims", namespace=story.namespace)
        # Sooner than the page draws all rows anew.
        page.locator("#list .row.loading").first.wait_for(timeout=15_000)
        page.locator("#list").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#detail")).to_be_hidden()

    page.locator("#detail").get_by_text(f"{story.namespace}/shared").first.wait_for()


def test_a_row_that_changes_under_a_pressed_button_is_opened(
    story: Story, viewers: Viewers
) -> None:
    """A browser makes no click of a press whose target is gone at the release."""
    story.queue("payer", quota=2, limit=2)
    story.devices(1)
    story.claim("pressed")
    board = viewers.board(viewers.token("viewer", *READ))
    board.show("claims", namespace=story.namespace)
    board.row("pressed", "not allocated")

    board.page.locator("#list .row").get_by_text("pressed", exact=True).hover()
    board.page.mouse.down()
    with board.page.expect_response(lambda r: "rows/claims" in r.url):
        story.claim("more")
    board.page.evaluate(TWO_FRAMES)
    board.page.mouse.up()

    board.page.locator("#detail").wait_for()
    assert "pressed" in board.page.locator("#detail-body").inner_text()
    board.row("more", "not allocated")
    assert board.errors == []


def test_behind_a_proxy_that_holds_streams_back_the_page_asks(
    story: Story, dashboard: ComponentProcess
) -> None:
    assert dashboard.name
    story.devices(1)
    with looking(story, browsers.BUFFERING) as viewers:
        board = viewers.board(viewers.token("viewer", *READ))
        board.says("every 3 s")
        board.show("claims", namespace=story.namespace)
        board.says("No row matches the filter.")

        story.claim()
        board.row("shared", "not allocated")
        assert board.errors == []


def test_while_no_plugin_runs_all_but_places_in_line_is_shown(
    story: Story, viewers: Viewers
) -> None:
    payer, _ = told(story)
    story.wait_refused("third", "OverLimit")
    board = viewers.board(viewers.token("viewer", *READ))
    board.show("waiting", namespace=story.namespace)

    with story.plugin.down():
        board.says("Places in line are not known: ")
        board.row("third", "OverLimit")
        assert "Places in line are not known: " in board.open("third")
        board.show("claims", namespace=story.namespace)
        board.row("shared", f"{payer} 1")

    expect(board.page.locator("#notice")).to_be_hidden()
    assert board.errors == []


def test_a_viewer_goes_on_with_the_next_process(
    story: Story, viewers: Viewers, dashboard: ComponentProcess
) -> None:
    """As with another replica: what was there is told to be old, until what changed is there."""
    story.queue("payer", quota=2, limit=2)
    story.devices(1)
    story.claim("before")
    board = viewers.board(viewers.token("viewer", *READ))
    board.show("claims", namespace=story.namespace)
    board.row("before", "not allocated")

    dashboard.stop()
    board.says("connection lost")
    board.says("What you see is from before; it is tried again.")
    board.row("before", "not allocated")
    story.delete("claim", "before")
    story.claim("after")
    dashboard.start()

    board.row("after", "not allocated")
    board.says("live")
    expect(board.page.locator("#list .row")).to_have_count(1)
    expect(board.page.locator("#notice")).to_be_hidden()
    assert board.errors == []


def test_who_may_not_list_a_thing_does_not_see_it(story: Story, viewers: Viewers) -> None:
    payer, _ = told(story)
    board = viewers.board(viewers.token("clerk", "resourceclaims"))
    board.says('verb "list" on "queues.moorage.dev"')
    for part, kind in (("waiting", "pods"), ("devices", "instances.akri.sh")):
        board.show(part)
        board.says(f'verb "list" on "{kind}"')

    board.show("claims", namespace=story.namespace)
    board.row("shared", payer, "2 pods")
    assert "second" not in board.open("shared", payer)
    assert board.errors == []


def test_no_token_of_the_cluster_opens_nothing(story: Story, viewers: Viewers) -> None:
    board = viewers.board("mallory")

    board.says("The cluster does not know this token")
    assert not board.page.locator("#app").is_visible()
    assert board.errors == []
