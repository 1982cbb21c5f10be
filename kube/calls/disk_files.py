"""Whether files exist, also in folders that may not be entered."""

from __future__ import annotations

from pathlib import Path


def is_there(path: Path) -> bool:
    """Whether the file exists; a path that cannot be inspected counts as absent.

    `Path.exists` raises PermissionError for a file in a folder that may not be entered.
    """
    try:
        return path.exists()
    except OSError:
        return False
