"""`kubectl-moorage`: planned, and honest about it."""

from __future__ import annotations

import sys


def main() -> int:
    """Say that kubectl-moorage is not built yet; the exit status is 2."""
    sys.stderr.write("kubectl-moorage: planned, not built yet; README.md says what works today.\n")
    return 2
