"""The dashboard over HTTP: a token, and nothing that its owner may not list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message

from kube.calls.api import ApiClient
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard.apiserver_reviews import REMEMBERED_SECONDS, Reviews
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.http_app import site_app
from scheduler_plugin.dashboard.http_views import Views
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.http_leader import CannotAskError, Leader
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.recent_events import Recent
from scheduler_plugin.objects.pods import NamespaceView
from tests.asgi import call, parts, status_and_text
from tests.fakes.reviewers import FakeReviewer
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim,
    a_class,
    a_pod,
    a_queue,
    a_request,
    an_allocated_claim,
    put,
)

HOSTILE = "<img src=x onerror=alert(1)>"


class FakeLeader:
    """The elected plugin, which knows one place in line."""

    problem = ""
    answer = PodAnswer(place='2 of 7 pods that wait in queue "vision"', reason="OverLimit")

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def why_not(self) -> str:
        return str(CannotAskError(self.problem)) if self.problem else ""

    async def pod(self, namespace: str, name: str) -> PodAnswer:
        self.asked.append(f"{namespace}/{name}")
        if self.problem:
            raise CannotAskError(self.problem)
        return self.answer


class Readiness:
    """Why the cluster is not read yet."""

    why_not = ""

    def __call__(self) -> str:
        return self.why_not


@pytest.fixture
def leader() -> FakeLeader:
    return FakeLeader()


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
def reviewer() -> FakeReviewer:
    return FakeReviewer(
        alice={"*"}, bob={"resourceclaims"}, carol={"pods/default", "resourceclaims/default"}
    )


@pytest.fixture
def world() -> World:
    found = World(SETTINGS)
    found.put_namespace(NamespaceView("default", {}))
    put(found, a_class("onvif"), a_queue("vision", onvif=(1, 2)), a_queue(HOSTILE))
    put(found, a_pod("v", queue="vision", claims=["cam"], node="node-a"))
    put(found, an_allocated_claim("cam", "v", queue="vision"))
    put(found, an_allocated_claim("far", namespace="elsewhere"))
    put(found, a_claim("more", requests=[a_request(count=3)]))
    put(found, a_pod("w", queue="vision", claims=["more"]))
    return found


@pytest.fixture
async def snapshots(world: World) -> AsyncIterator[Snapshots]:
    found = Snapshots(world, Recent())
    running = asyncio.create_task(found.run())
    yield found
    running.cancel()
    await asyncio.wait((running,))


class Clock:
    """Of what is remembered."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(
    world: World,
    snapshots: Snapshots,
    reviewer: FakeReviewer,
    readiness: Readiness,
    leader: FakeLeader,
    clock: Clock,
) -> ASGIApp:
    reviews = Reviews(cast(ApiClient, reviewer), clock)
    return site_app(Views(world, snapshots, reviews, cast(Leader, leader), readiness))


async def ask(app: ASGIApp, path: str, who: str = "alice") -> tuple[int, Any, dict[str, str]]:
    """Status, the text or what its JSON says, and the headers."""
    headers = {"authorization": f"Bearer {who}"} if who else {}
    start, *rest = await call(app, "GET", f"/dashboard/{path}", parts([b""]), headers)
    text = b"".join(message["body"] for message in rest).decode()
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    said = json.loads(text) if found.get("content-type") == "application/json" else text
    return start["status"], said, found


async def test_claims_of_other_namespaces_are_named_to_who_may_list_them(
    world: World, app: ASGIApp
) -> None:
    secret = an_allocated_claim("secret", namespace="elsewhere", queue="vision", uid="secret")
    put(world, secret, a_claim("one"), a_pod("x", queue="vision", claims=["one"]))

    _, all_of_it, _ = await ask(app, "api/pods/default/x")
    _, own, _ = await ask(app, "api/pods/default/x", "carol")

    assert own["why"]["reason"] == "OverLimit"
    assert "ResourceClaim elsewhere/secret" in str(all_of_it["why"]["remedies"])
    assert "elsewhere" not in str(own)
    assert "ResourceClaim default/cam: 1 and 1 claim or pod in other namespaces" in str(own)


async def test_the_page_is_for_everybody_and_its_data_is_not(app: ASGIApp) -> None:
    status, page, headers = await ask(app, "", who="")

    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "vision" not in page
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["main.js", "style.css", "vendor/uPlot.iife.min.js", "icon.svg"])
async def test_its_files_are_in_the_package(app: ASGIApp, name: str) -> None:
    assert (await ask(app, name, who=""))[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "api/state",
        "api/stream",
        *(f"api/rows/{part}" for part in Part),
        "api/claims/default/cam",
        "api/pods/default/w",
        "api/history?queue=vision&device_class=onvif",
    ],
)
@pytest.mark.parametrize("who", ["", "mallory"])
async def test_nothing_is_said_without_a_token_that_is_known(
    app: ASGIApp, path: str, who: str
) -> None:
    status, said, headers = await ask(app, path, who)

    assert status == 401
    assert "token" in said
    assert headers["www-authenticate"] == "Bearer"


async def test_each_viewer_sees_what_he_may_list(app: ASGIApp) -> None:
    _, alice, headers = await ask(app, "api/state")
    _, bob, _ = await ask(app, "api/state", "bob")

    totals = {part: found["total"] for part, found in alice["parts"].items()}
    assert totals == {"queues": 2, "claims": 3, "devices": 1, "waiting": 1, "events": 0}
    assert [part for part, found in bob["parts"].items() if not found["denied"]] == ["claims"]
    assert bob["parts"]["queues"]["denied"] == (
        '"bob" may not see this: it needs the verb "list" on "queues.moorage.dev".'
    )
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("part", [Part.QUEUES, Part.DEVICES, Part.WAITING, Part.EVENTS])
async def test_a_list_that_one_may_not_see_is_refused_with_verb_and_resource(
    app: ASGIApp, part: Part
) -> None:
    status, said, _ = await ask(app, f"api/rows/{part}", "bob")

    assert status == 403
    assert 'the verb "list" on' in said


async def test_who_may_list_in_one_namespace_sees_that_one(app: ASGIApp) -> None:
    everywhere, _, _ = await ask(app, "api/rows/claims", "carol")
    status, said, _ = await ask(app, "api/rows/claims?namespace=default", "carol")

    assert (everywhere, status) == (403, 200)
    assert [row["name"] for row in said["rows"]] == ["cam", "more"]
    assert (await ask(app, "api/rows/claims?namespace=elsewhere", "carol"))[0] == 403
    assert (await ask(app, "api/rows/queues?namespace=default", "carol"))[0] == 403


async def test_a_filter_does_not_change_how_much_there_is(app: ASGIApp) -> None:
    _, said, _ = await ask(app, "api/state?text=cam&namespace=elsewhere")
    found = {part: (one["total"], one["all"]) for part, one in said["parts"].items()}

    assert (found["claims"], found["queues"], found["waiting"]) == ((0, 3), (0, 2), (0, 1))


async def test_of_other_namespaces_it_is_not_told_how_much_there_is(app: ASGIApp) -> None:
    """Carol may list claims in one namespace only."""
    _, said, _ = await ask(app, "api/state?text=cam&namespace=default", "carol")
    _, denied, _ = await ask(app, "api/state", "carol")

    claims = said["parts"]["claims"]
    assert (claims["total"], claims["all"]) == (1, 2)
    assert (denied["parts"]["claims"]["total"], denied["parts"]["claims"]["all"]) == (0, 0)


async def test_sharers_are_for_those_who_may_list_pods(app: ASGIApp) -> None:
    _, alice, _ = await ask(app, "api/claims/default/cam")
    _, bob, _ = await ask(app, "api/claims/default/cam", "bob")
    _, rows, _ = await ask(app, "api/rows/claims?text=cam", "bob")

    assert alice["sharers"] == [{"queue": "vision", "pods": ["default/v"]}]
    assert bob["sharers"] is None
    assert 'on "pods"' in bob["denied"]
    assert "sharers" not in rows["rows"][0]


async def test_why_a_pod_waits_is_what_kubectl_says(app: ASGIApp) -> None:
    _, said, _ = await ask(app, "api/pods/default/w")

    assert said["why"]["reason"] == "OverLimit"
    assert said["why"]["sentence"].endswith("uses 1 onvif, 3 more would pass its limit of 2.")
    assert said["place"] == '2 of 7 pods that wait in queue "vision"'


async def test_the_past_comes_with_the_ceilings_of_now(app: ASGIApp, snapshots: Snapshots) -> None:
    snapshots.history.begin(5.0)
    snapshots.history.put(("vision", "onvif"), 1, 2)
    _, said, _ = await ask(app, "api/history?queue=vision&device_class=onvif")

    assert (said["quota"], said["limit"]) == (1, 2)
    assert (said["past"]["usage"][-1], said["past"]["requested"][-1]) == (1, 2)


async def test_the_past_of_a_measure_comes_in_its_unit_and_says_how_to_draw_it(
    app: ASGIApp, world: World, snapshots: Snapshots
) -> None:
    measure = {"name": "m", "driver": "gpu.example.com", "measure": {"capacity": "memory"}}
    queue = a_queue("measured", resources=[{**measure, "quota": "4Gi", "limit": "8Gi"}])
    world.put_queue(queue)
    (key,) = queue.shares
    snapshots.history.begin(5.0)
    snapshots.history.put(("measured", key), 2**31 * 1000, 2**32 * 1000)

    _, said, _ = await ask(app, "api/history?queue=measured&device_class=m")

    assert (said["quota"], said["limit"]) == (4 * 2**30, 8 * 2**30)
    assert (said["unit"], said["size"]) == ("Gi", 2**30)
    assert (said["past"]["usage"][-1], said["past"]["requested"][-1]) == (2**31, 2**32)


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("api/claims/default/none", 404, "no accounted ResourceClaim default/none"),
        ("api/pods/default/none", 404, "no pod default/none"),
        ("api/history?queue=none&device_class=x", 404, "no Queue none"),
        ("api/rows/secrets", 422, "part: "),
        ("api/rows/claims?limit=100000", 422, "limit: "),
        ("api/rows/claims?offset=-1", 422, "offset: "),
        ("../metrics", 404, "Not Found"),
        ("..%2f..%2fhttp_app.py", 404, "Not Found"),
    ],
)
async def test_what_is_not_there_is_said(
    app: ASGIApp, path: str, status: int, sentence: str
) -> None:
    found, said, _ = await ask(app, path)

    assert found == status
    assert sentence in said


async def test_before_the_cluster_is_read_it_is_said(app: ASGIApp, readiness: Readiness) -> None:
    before = await status_and_text(app, "GET", "/readyz")
    readiness.why_not = "pods of v1 are not known yet."

    assert before == (200, "ok")
    assert await status_and_text(app, "GET", "/readyz") == (503, readiness.why_not)
    assert (await ask(app, "api/state"))[:2] == (503, readiness.why_not)
    assert await status_and_text(app, "GET", "/healthz") == (200, "ok")


async def test_an_api_server_that_does_not_say_lets_nobody_in(
    app: ASGIApp, reviewer: FakeReviewer
) -> None:
    reviewer.away = True
    status, said, _ = await ask(app, "api/state")

    assert status == 503
    assert "does not say what you may see" in said


async def test_what_the_leader_holds_and_decided_is_told(app: ASGIApp, leader: FakeLeader) -> None:
    _, same, _ = await ask(app, "api/pods/default/w")
    leader.answer = PodAnswer(
        place="", reason="RoomIsLeft", message="It leaves room.", held="Held: room."
    )
    _, said, _ = await ask(app, "api/pods/default/w")

    assert (same["held"], same["leader"]) == ("", ""), "the same reason is told once"
    assert (said["place"], said["held"], said["leader"]) == ("", "Held: room.", "It leaves room.")
    assert (await ask(app, "api/state"))[1]["leader"] == ""


async def test_where_the_leader_cannot_be_asked_all_else_is_told(
    app: ASGIApp, leader: FakeLeader
) -> None:
    leader.problem = "it hangs."
    _, said, _ = await ask(app, "api/pods/default/w")
    _, state, _ = await ask(app, "api/state")

    assert said["why"]["reason"] == "OverLimit"
    assert said["place"] == ""
    assert said["problem"] == state["leader"] == "Places in line are not known: it hangs."
    assert state["parts"]["waiting"]["total"] == 1


async def test_the_leader_is_not_asked_for_pods_that_a_viewer_may_not_list(
    app: ASGIApp, leader: FakeLeader
) -> None:
    assert (await ask(app, "api/pods/default/w", "bob"))[0] == 403
    assert leader.asked == []


async def test_names_come_as_they_are(app: ASGIApp) -> None:
    _, said, _ = await ask(app, "api/rows/queues")

    assert said["rows"][0]["queue"] == HOSTILE


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(app: ASGIApp, method: str) -> None:
    for path in ("", "api/state", "api/rows/claims", "main.js"):
        headers = {"authorization": "Bearer alice"}
        start, *_ = await call(app, method, f"/dashboard/{path}", parts([b""]), headers)
        assert start["status"] == 405


@pytest.mark.parametrize("path", ["/", "/dashboard"])
async def test_the_page_is_found(app: ASGIApp, path: str) -> None:
    start, *_ = await call(app, "GET", path, parts([b""]))

    assert start["status"] == 307
    assert dict(start["headers"])[b"location"] == b"dashboard/"


class Stream:
    """A viewer who listens."""

    def __init__(self, app: ASGIApp, who: str = "alice") -> None:
        self._sent: asyncio.Queue[Message] = asyncio.Queue()
        self._gone = asyncio.Event()
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/dashboard/api/stream",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"authorization", f"Bearer {who}".encode())],
        }
        self.task = asyncio.create_task(self._run(app, scope))
        self._asked = False

    async def _run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        await app(scope, self._receive, self._sent.put)

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> Message:
        async with asyncio.timeout(20):
            return await self._sent.get()

    async def event(self) -> tuple[str, Any]:
        """The next event and what it says."""
        while True:
            text = (await self.next()).get("body", b"").decode()
            fields = dict(line.partition(": ")[::2] for line in text.strip().splitlines())
            if "event" in fields:
                return fields["event"], json.loads(fields["data"])

    async def leave(self) -> None:
        self._gone.set()
        await asyncio.wait((self.task,), timeout=20)
        assert self.task.done()


async def test_a_listener_hears_of_a_change(
    app: ASGIApp, world: World, snapshots: Snapshots
) -> None:
    stream = Stream(app)
    start = await stream.next()
    first = await stream.event()
    put(world, a_claim("another"))
    snapshots.changed()
    second = await stream.event()
    await stream.leave()

    assert dict(start["headers"])[b"x-accel-buffering"] == b"no"
    assert (first[0], first[1]["parts"]["claims"]["total"]) == ("state", 3)
    assert (second[0], second[1]["parts"]["claims"]["total"]) == ("state", 4)


async def test_a_listener_whose_token_ends_is_told_so(
    app: ASGIApp, reviewer: FakeReviewer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_plugin.dashboard.http_app.CHECK_SECONDS", 0.05)
    stream = Stream(app)
    await stream.event()
    reviewer.may.clear()
    clock.now += REMEMBERED_SECONDS + 1
    ended = await stream.event()
    await asyncio.wait((stream.task,), timeout=20)

    assert ended[0] == "ended"
    assert "token" in ended[1]


async def test_a_listener_before_the_cluster_is_read_stays_signed_in(
    app: ASGIApp, readiness: Readiness
) -> None:
    """He comes back to a process that has just begun; the event that ends a token is another."""
    readiness.why_not = "pods of v1 are not known yet."
    stream = Stream(app)
    failed = await stream.event()
    await asyncio.wait((stream.task,), timeout=20)

    assert failed == ("failed", "pods of v1 are not known yet.")


async def test_listeners_are_counted_and_no_more_than_so_many(
    app: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_plugin.dashboard.http_app.MOST_LISTENING", 1)
    stream = Stream(app)
    await stream.event()
    second = await ask(app, "api/stream")
    await stream.leave()
    third = Stream(app)
    await third.event()
    await third.leave()

    assert second[0] == 503
    assert "poll the state" in second[1]
