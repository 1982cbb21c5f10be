"""What the stories read from an audit log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.sharing import audit


def test_only_whole_lines_of_known_askers_with_the_words_are_read(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    asked = [
        {"user": {"username": "anna"}, "requestURI": "/early?story"},
        {"user": {}, "requestURI": "/refused?story", "responseStatus": {"code": 401}},
        {"user": {"username": "anna"}, "requestURI": "/other"},
        {"user": {"username": "bert"}, "requestURI": "/late?story"},
    ]
    lines = [json.dumps(entry) + "\n" for entry in asked]
    log.write_text("".join([*lines, lines[0][:20]]))

    def read(since: int) -> list[str]:
        return [entry["requestURI"] for entry in audit.entries(log, "story", since)]

    assert read(0) == ["/early?story", "/late?story"]
    assert read(len(lines[0])) == ["/late?story"]
    # A line that was being written at the moment that is meant.
    assert read(len(lines[0]) - len('story"}\n')) == ["/late?story"]
