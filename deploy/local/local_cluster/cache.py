"""Where what is built and fetched once is kept, for all clones."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`MOORAGE_CACHE`, or `moorage` below the user's cache folder."""
    if own := os.environ.get("MOORAGE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "moorage"
