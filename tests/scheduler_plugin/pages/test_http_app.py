"""The pages: they are read, and nothing else."""

from __future__ import annotations

from itertools import count

import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from scheduler_plugin.accounting.world import World
from scheduler_plugin.pages.http_app import pages_app
from scheduler_plugin.pages.http_figures import KEPT_SECONDS, FiguresPage
from scheduler_plugin.pages.prometheus import Figures
from tests.asgi import status_and_body, status_and_text
from tests.fakes.waiting import FakeWaitingPods
from tests.scheduler_plugin.builders import a_world, amounts


class Readiness:
    """Why the cluster is not read yet."""

    not_ready = ""
    failure: Exception | None = None

    def __call__(self) -> str:
        if self.failure:
            raise self.failure
        return self.not_ready


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
def pods() -> FakeWaitingPods:
    return FakeWaitingPods()


@pytest.fixture
def world() -> World:
    return a_world()


@pytest.fixture
def app(readiness: Readiness, pods: FakeWaitingPods, world: World) -> FastAPI:
    figures = Figures(world, dict, str, dict, [])
    # Each time somebody looks at the clock, a page is too old.
    page = FiguresPage(figures.page, count(step=KEPT_SECONDS).__next__)
    return pages_app(readiness, pods, page)


async def test_healthy_before_it_is_ready(app: FastAPI, readiness: Readiness) -> None:
    readiness.not_ready = "Claims are not in sync."

    assert await status_and_text(app, "GET", "/healthz") == (200, "ok")
    assert await status_and_text(app, "GET", "/readyz") == (503, "Claims are not in sync.")
    readiness.not_ready = ""
    assert await status_and_text(app, "GET", "/readyz") == (200, "ok")


async def test_a_fault_in_readiness_is_not_ready(app: FastAPI, readiness: Readiness) -> None:
    readiness.failure = RuntimeError("a fault")

    said = "internal error: RuntimeError: a fault"
    assert await status_and_text(app, "GET", "/readyz") == (500, said)
    assert await status_and_text(app, "GET", "/healthz") == (200, "ok")


async def test_a_waiting_pod_has_a_page(app: FastAPI) -> None:
    assert await status_and_body(app, "GET", "/waiting/default/w") == (
        200,
        {
            "namespace": "default",
            "name": "w",
            "queue": "vision",
            "place": 2,
            "waiting": 7,
            "reason": "OverLimit",
            "message": "It does not fit.",
        },
    )


@pytest.mark.parametrize(
    ("host", "code"), [("10.0.0.7", 403), ("::ffff:10.0.0.7", 403), ("::ffff:127.0.0.1", 200)]
)
async def test_who_waits_is_not_told_to_the_network(app: FastAPI, host: str, code: int) -> None:
    asked = status_and_text(app, "GET", "/waiting/default/w", client=host)

    assert (await asked)[0] == code
    assert (await status_and_text(app, "GET", "/metrics", client=host))[0] == 200


async def test_who_is_in_no_line_has_no_place(app: FastAPI, pods: FakeWaitingPods) -> None:
    pods.place = None

    code, page = await status_and_body(app, "GET", "/waiting/default/w")

    assert (code, page["place"], page["waiting"]) == (200, None, None)


async def test_who_does_not_wait_has_none(app: FastAPI, pods: FakeWaitingPods) -> None:
    other = await status_and_text(app, "GET", "/waiting/default/p1")
    assert other == (404, "Pod default/p1 does not wait.")

    pods.not_told = "Another holds the Lease."
    untold = await status_and_text(app, "GET", "/waiting/default/w")
    assert untold == (503, "Another holds the Lease.")


async def test_what_nobody_is_charged_for_is_a_figure(
    app: FastAPI, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "moorage_scheduler_plugin_unattributed"
    nothing = await status_and_text(app, "GET", "/metrics")
    monkeypatch.setattr(world.ledger, "unattributed", lambda: amounts(onvif=2, gpu=1))
    code, page = await status_and_text(app, "GET", "/metrics")

    (family,) = (f for f in text_string_to_metric_families(page) if f.name == name)
    assert (code, family.type) == (200, "gauge")
    assert {s.labels["device_class"]: s.value for s in family.samples} == {"gpu": 1, "onvif": 2}
    assert f"{name}{{" not in nothing[1]
    assert "process_resident_memory_bytes" in page


async def test_programs_can_ask_what_a_page_holds(app: FastAPI) -> None:
    code, schema = await status_and_body(app, "GET", "/openapi.json")

    assert code == 200
    assert "/waiting/{namespace}/{name}" in schema["paths"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/filter", 404),
        ("POST", "/preempt", 404),
        ("POST", "/bind", 404),
        ("GET", "/waiting/default", 404),
        ("GET", "/docs", 404),
        ("POST", "/healthz", 405),
        ("POST", "/metrics", 405),
        ("DELETE", "/waiting/default/w", 405),
    ],
)
async def test_pages_are_only_read(app: FastAPI, method: str, path: str, code: int) -> None:
    assert (await status_and_text(app, method, path))[0] == code
