"""The pages as HTTP requests: a FastAPI application.

GET  /healthz                       the process answers
GET  /readyz                        the kube-scheduler beside this process is served, or why not
GET  /waiting/<namespace>/<pod>     a waiting pod's place in line, and why it waits; without a
                                    token, so only at loopback, where a forwarded port ends
GET  /metrics                       figures for Prometheus
GET  /openapi.json                  the schema of the answers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from kube.loopback import is_loopback
from scheduler_plugin.pages.http_figures import FiguresPage
from scheduler_plugin.waiting.admissions import WaitingPod, WaitingPodQueries


class WaitingPodPage(BaseModel):
    """A pod that waits for quota, at this moment."""

    namespace: str
    name: str
    queue: str
    place: Annotated[
        int | None,
        Field(description="Place in its line, from 1; null if it waits for more than its quota."),
    ]
    waiting: Annotated[int | None, Field(description="The number of pods in its line.")]
    reason: Annotated[str, Field(description='Why it waits; "" if its gate is removed soon.')]
    message: str

    @classmethod
    def of(cls, pod: WaitingPod) -> WaitingPodPage:
        return cls(
            namespace=pod.namespace,
            name=pod.name,
            queue=pod.queue,
            place=pod.place.number if pod.place else None,
            waiting=pod.place.waiting if pod.place else None,
            reason=pod.reason,
            message=pod.message,
        )


def pages_app(
    why_not_ready: Callable[[], str],
    waiting: WaitingPodQueries,
    figures: FiguresPage,
) -> FastAPI:
    """The application; errors are answered with a sentence of plain text.

    `why_not_ready` returns why kube-scheduler is not served; "" if it is.
    """
    app = FastAPI(
        title="Moorage",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={StarletteHTTPException: _sentence, Exception: _broken},
    )

    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        return "ok"

    @app.get("/readyz", response_class=PlainTextResponse)
    async def readyz() -> str:
        if why := why_not_ready():
            raise HTTPException(503, why)
        return "ok"

    @app.get("/waiting/{namespace}/{name}", dependencies=[Depends(_from_within)])
    async def waiting_pod(namespace: str, name: str) -> WaitingPodPage:
        if why := waiting.why_unknown():
            raise HTTPException(503, why)
        found = waiting.waiting(namespace, name)
        if isinstance(found, str):
            raise HTTPException(404, found)
        return WaitingPodPage.of(found)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        return figures.answer(request)

    return app


async def _from_within(request: Request) -> None:
    if not is_loopback(request.client.host if request.client else ""):
        raise HTTPException(
            403, "This page needs no token and answers only at loopback: forward the pod's port."
        )


async def _sentence(_request: Request, error: StarletteHTTPException) -> PlainTextResponse:
    return PlainTextResponse(error.detail, error.status_code, error.headers)


async def _broken(_request: Request, error: Exception) -> PlainTextResponse:
    """The server logs the error."""
    return PlainTextResponse(f"internal error: {type(error).__name__}: {error}", 500)
