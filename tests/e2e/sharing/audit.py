"""The API server's audit log, as stories read it while it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = dict[str, Any]


def entries(log: Path, words: str, since: int = 0) -> Iterator[Entry]:
    """What the API server was asked and has answered, the earliest first.

    Only lines with these words in them, from a place in the log on. Requests whose asker the API
    server does not know are left out: they did nothing. One whose client goes away while its token
    is looked up ends like this, too.
    """
    with log.open("rb") as lines:
        if since:
            # The place may lie within a line that was being written: it is of what was before.
            lines.seek(since - 1)
            lines.readline()
        for line in map(bytes.decode, lines):
            if words in line and line.endswith("\n"):
                entry = json.loads(line)
                if "username" in entry["user"]:
                    yield entry
