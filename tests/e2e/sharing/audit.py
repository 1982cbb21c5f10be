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
    with log.open() as lines:
        lines.seek(since)
        for line in lines:
            if words in line and line.endswith("\n"):
                entry = json.loads(line)
                if "username" in entry["user"]:
                    yield entry
