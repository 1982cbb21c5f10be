"""`moorage-scheduler-plugin`: planned, and honest about it."""

from __future__ import annotations

import sys


def main() -> int:
    """Say that the scheduler plugin is not built yet; the exit status is 2."""
    sys.stderr.write(
        "moorage-scheduler-plugin: planned, not built yet; README.md says what works today.\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
