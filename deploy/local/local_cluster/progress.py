"""Tells whoever waits what is being done, on standard error."""

from __future__ import annotations

import sys


def say(sentence: str) -> None:
    """Print at once: output that is buffered during a build of minutes helps nobody."""
    print(f"local-cluster: {sentence}", file=sys.stderr, flush=True)
