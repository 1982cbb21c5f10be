"""The dashboard over HTTP.

GET  /healthz                           the process answers
GET  /readyz                            the cluster was read, or why not
GET  /dashboard/                        the page; it has no data, and every client may load it

Below /dashboard a FastAPI application answers:

GET  /<file>                            the script, style and plots of the page
GET  /api/state                         the viewer's name and rights, and how much there is
GET  /api/stream                        the same after each change, as server-sent events
GET  /api/rows/<part>                   a window of one list
GET  /api/claims/<namespace>/<name>     the pods that share a claim
GET  /api/pods/<namespace>/<name>       why a pod runs or waits, and its place in line
GET  /api/history                       the usage of a queue in the last hours

Every path below /api needs a token of the cluster in the header Authorization, and returns what the
token's user may list. No cookie is set, so that no other page can make requests for the user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scheduler_plugin.dashboard.apiserver_reviews import (
    CannotReviewError,
    NotSignedInError,
    Viewer,
)
from scheduler_plugin.dashboard.http_views import Views, encode
from scheduler_plugin.dashboard.parts import Part

CHECK_SECONDS = 10.0
"""How often the rights of a viewer with a stream are reviewed again."""

MOST_LISTENING = 100

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
WITH_DATA = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The last header tells nginx not to buffer a stream."""

router = APIRouter(prefix="/api")
_bearer = HTTPBearer(auto_error=False)


class Filter(BaseModel):
    """Selects rows that have all words, in one namespace, or in all if it is ""."""

    text: str = Field("", max_length=200)
    namespace: str = Field("", max_length=253)


class Rows(Filter):
    """Selects a window of the rows."""

    offset: int = Field(0, ge=0, le=10_000_000)
    limit: int = Field(100, ge=1, le=200)


async def _views(request: Request) -> Views:
    views: Views = request.app.state.views
    return views


async def _token(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str:
    return credentials.credentials if credentials else ""


Answers = Annotated[Views, Depends(_views)]
Token = Annotated[str, Depends(_token)]


async def _viewer(views: Answers, token: Token) -> Viewer:
    return await views.reviews.viewer(token)


SignedIn = Annotated[Viewer, Depends(_viewer)]


async def _listener(request: Request, views: Answers, user: SignedIn) -> AsyncIterator[Viewer]:
    """The viewer of a stream, which counts while the request lasts."""
    if request.app.state.listening >= MOST_LISTENING:
        raise HTTPException(503, f"{MOST_LISTENING} streams are open already: poll the state.")
    request.app.state.listening += 1
    try:
        with views.snapshots.listening():
            yield user
    finally:
        request.app.state.listening -= 1


@router.get("/state")
async def state(views: Answers, user: SignedIn, wanted: Annotated[Filter, Query()]) -> Response:
    return _json(await views.state(user, wanted.text, wanted.namespace))


@router.get("/stream", response_class=EventSourceResponse)
async def stream(
    views: Answers,
    token: Token,
    user: Annotated[Viewer, Depends(_listener)],
    wanted: Annotated[Filter, Query()],
) -> AsyncIterator[ServerSentEvent]:
    said = b""
    while True:
        try:
            await views.reviews.viewer(token)
            found = encode(await views.state(user, wanted.text, wanted.namespace))
        except NotSignedInError as error:
            yield ServerSentEvent(event="ended", data=str(error))
            return
        except (CannotReviewError, HTTPException) as error:
            # The cluster is not read yet, for example: the viewer stays signed in, and retries.
            yield ServerSentEvent(event="failed", data=getattr(error, "detail", str(error)))
            return
        if found != said:
            said = found
            yield ServerSentEvent(event="state", raw_data=found.decode())
        await views.snapshots.after(views.number, CHECK_SECONDS)


@router.get("/rows/{part}")
async def rows(
    views: Answers, user: SignedIn, part: Part, wanted: Annotated[Rows, Query()]
) -> Response:
    query = await views.query(user, part, wanted.text, wanted.namespace)
    found = await views.rows(query, wanted.offset, wanted.limit)
    return Response(found, media_type="application/json")


@router.get("/claims/{namespace}/{name}")
async def claim(views: Answers, user: SignedIn, namespace: str, name: str) -> Response:
    return _json(await views.claim(user, namespace, name))


@router.get("/pods/{namespace}/{name}")
async def pod(views: Answers, user: SignedIn, namespace: str, name: str) -> Response:
    return _json(await views.pod(user, namespace, name))


@router.get("/history")
async def history(views: Answers, user: SignedIn, queue: str, device_class: str) -> Response:
    return _json(await views.past(user, queue, device_class))


def site_app(views: Views) -> ASGIApp:
    """The dashboard and the pages for probes."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_request: Request) -> Response:
        why_not = views.why_not_ready()
        return PlainTextResponse(why_not or "ok", 503 if why_not else 200)

    async def to_dashboard(_request: Request) -> Response:
        """Redirect by a relative path, which is right behind a proxy, too."""
        return RedirectResponse("dashboard/")

    pages = {"/healthz": healthz, "/readyz": readyz}
    beginnings = dict.fromkeys(("/", "/dashboard"), to_dashboard)
    routes = [Route(path, page) for path, page in (pages | beginnings).items()]
    return Starlette(routes=[*routes, Mount("/dashboard", dashboard_app(views))])


def dashboard_app(views: Views) -> ASGIApp:
    """The application; errors are answered with a sentence of plain text."""
    app = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={
            StarletteHTTPException: _sentence,
            RequestValidationError: _not_understood,
            NotSignedInError: _not_signed_in,
            CannotReviewError: _cannot_review,
        },
    )
    app.state.views, app.state.listening = views, 0
    app.include_router(router)
    app.mount("/", StaticFiles(packages=[("scheduler_plugin.dashboard", "assets")], html=True))
    return _WithHeaders(app)


class _WithHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = WITH_DATA if "/api/" in scope.get("path", "") else HEADERS

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(wanted)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _json(found: Any) -> Response:
    return Response(encode(found), media_type="application/json")


async def _sentence(_request: Request, error: Exception) -> PlainTextResponse:
    status = getattr(error, "status_code", 500)
    return PlainTextResponse(str(getattr(error, "detail", error)), status)


async def _not_understood(_request: Request, error: Exception) -> PlainTextResponse:
    problems = error.errors() if isinstance(error, RequestValidationError) else ()
    said = (f"{'.'.join(map(str, p['loc'][1:]))}: {p['msg']}" for p in problems)
    return PlainTextResponse("; ".join(said), 422)


async def _not_signed_in(_request: Request, error: Exception) -> PlainTextResponse:
    return PlainTextResponse(str(error), 401, {"WWW-Authenticate": "Bearer"})


async def _cannot_review(_request: Request, error: Exception) -> PlainTextResponse:
    return PlainTextResponse(str(error), 503)
