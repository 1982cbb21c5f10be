"""A real browser, and a way from it to the dashboard, which listens on its node's loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

from local_cluster import debian
from local_cluster.api import Cluster, Component, Mode
from tests.e2e.sharing import dashboards
from tests.e2e.sharing.installation import NODE, ROOT

LIMIT_MS = 60_000
"""How long a page may take; Playwright's five seconds for what is expected are few."""
expect.set_options(timeout=LIMIT_MS)

PACKAGES = {"chromium": "chromium"}
PORT = 10264

RELAY = """
import asyncio, sys
host, port, *others = sys.argv[1], *map(int, sys.argv[2:])

async def copy(reader, writer):
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()

async def meet(reader, writer):
    for other in others:
        try:
            there = await asyncio.open_connection("127.0.0.1", other)
        except OSError:
            continue
        both = (copy(reader, there[1]), copy(there[0], writer))
        await asyncio.gather(*both, return_exceptions=True)
        return
    writer.close()

async def main():
    server = await asyncio.start_server(meet, host, port)
    await server.serve_forever()

asyncio.run(main())
"""
"""What `kubectl port-forward` is for the dashboard's pod: the dashboard of these stories is none.
With several ports, what a Service is for several pods: the first that is there."""


BUFFERING = """
import sys
import aiohttp
from aiohttp import web

async def relayed(request):
    wanted = {"Authorization": request.headers.get("Authorization", "")}
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{sys.argv[3]}{request.path_qs}"
        async with session.get(url, headers=wanted) as found:
            body = await found.read()  # all of it, before anything is passed on
            kind = {"Content-Type": found.headers["Content-Type"]}
            return web.Response(status=found.status, body=body, headers=kind)

app = web.Application()
app.router.add_get("/{path:.*}", relayed)
web.run_app(app, host=sys.argv[1], port=int(sys.argv[2]))
"""
"""A proxy that holds streams back, whatever it is asked."""


INSIDE = """() => {
    const page = document.documentElement;
    const { right } = document.getElementById("list").getBoundingClientRect();
    const cells = [...document.querySelectorAll("#list .row .cell")];
    return page.scrollWidth <= page.clientWidth
        && cells.every((cell) => cell.getBoundingClientRect().right <= right);
}"""


@contextmanager
def reached(
    cluster: Cluster, relay: str = RELAY, ports: Sequence[int] = (dashboards.PORT,)
) -> Iterator[str]:
    """The dashboard's address as somebody types it who forwards a port; see `browser`."""
    host = cluster.node(NODE).address
    argv = (sys.executable, "-c", relay, host, *map(str, (PORT, *ports)))
    handle = cluster.start_component(
        Component(name="dashboard-relay", argv=argv, node=NODE, cwd=ROOT), Mode.PROCESS
    )
    try:
        url = f"http://localhost:{PORT}/dashboard/"
        there = ("--connect-to", f"localhost:{PORT}:{host}:{PORT}")
        ask = ("curl", "--silent", "--fail", "--max-time", "2", *there, url)
        cluster.wait_until(
            "the dashboard is reached", lambda: subprocess.run(ask, check=False).returncode == 0
        )
        yield url
    finally:
        handle.stop()


@contextmanager
def browser(cluster: Cluster) -> Iterator[Browser]:
    """Debian's Chromium, for which the node is this machine: there the forwarded port is."""
    rule = f"MAP localhost {cluster.node(NODE).address}"
    args = ["--no-sandbox", f"--host-resolver-rules={rule}"]
    debian.ensure_packages(PACKAGES)
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=debian.find("chromium"), args=args)
        yield found
        found.close()


class Board:
    """The dashboard as somebody sees it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        page.set_default_timeout(LIMIT_MS)
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._heard)
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.goto(url)

    def _heard(self, message: object) -> None:
        text = str(getattr(message, "text", message))
        if getattr(message, "type", "") == "error" and "Failed to load resource" not in text:
            self.errors.append(text)

    def sign_in(self, token: str) -> None:
        self.page.fill("#token", token)
        self.page.press("#token", "Enter")

    def show(self, part: str, text: str = "", namespace: str = "") -> None:
        """One list, filtered."""
        self.page.click(f"#tab-{part}")
        self.page.fill("#filter", text)
        self.page.fill("#namespace", namespace)
        # Rows that are there before what was typed counts are replaced, under a click, too.
        self.page.locator("#list:not([aria-busy=true])").wait_for(state="attached")

    def row(self, *texts: str) -> str:
        """What the row says that has these texts, once it is there."""
        found = self.page.locator("#list .row")
        for text in texts:
            found = found.filter(has_text=text)
        found.first.wait_for()
        return found.first.inner_text().replace("\n", " ")

    def open(self, *texts: str) -> str:
        """What is said beside the list of a row."""
        found = self.page.locator("#list .row")
        for text in texts:
            found = found.filter(has_text=text)
        found.first.click()
        self.page.locator("#detail").wait_for()
        return self.page.locator("#detail-body").inner_text()

    def says(self, text: str) -> None:
        """Wait until the page says this somewhere."""
        self.page.get_by_text(text).first.wait_for()

    def settle(self) -> None:
        """Wait until the rows that are seen are there."""
        there = "#empty:not([hidden]), #list:not([hidden]) .row:not(.loading)"
        self.page.locator(there).first.wait_for()
        self.page.evaluate("document.activeElement.blur()")

    def is_inside(self) -> bool:
        """Whether nothing sticks out to the side."""
        return bool(self.page.evaluate(INSIDE))
