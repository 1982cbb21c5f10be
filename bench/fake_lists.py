"""A fake API server that shows the objects of a snapshot: lists in one page, and its version.

    python -m bench.fake_lists SNAPSHOT

It prints its port, and serves plain HTTP until its end.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ABSENT = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}


class FakeLists(ThreadingHTTPServer):
    """Answers with what was encoded beforehand."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        metadata = {"resourceVersion": "1"}
        self.bodies = {
            plural: json.dumps({"metadata": metadata, "items": items}).encode()
            for plural, items in objects.items()
        } | {"version": json.dumps({"gitVersion": "v1.36.3"}).encode()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Head and body in one packet, so that neither waits for the acknowledgement of the other."""

    def do_GET(self) -> None:
        assert isinstance(self.server, FakeLists)
        body = self.server.bodies.get(self.path.partition("?")[0].rpartition("/")[2])
        self.send_response(404 if body is None else 200)
        body = json.dumps(ABSENT).encode() if body is None else body
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text())
    server = FakeLists(document["objects"])
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
