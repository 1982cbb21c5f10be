"""The scheduler plugin with nobody in it who takes anything back: what `bench.throughput` compares.

It has no such setting. What follows the pods for it, and what looks whether somebody lacks room,
does nothing here.
"""

from __future__ import annotations

import asyncio
import sys

from binder.reclaiming.apiserver_reclaims import Reclaimer
from scheduler_plugin.__main__ import main
from scheduler_plugin.accounting.api import WorldChange


async def rest(_: Reclaimer) -> None:
    await asyncio.Event().wait()


def unheard(_: Reclaimer, _change: WorldChange) -> None:
    """Nobody minds."""


if __name__ == "__main__":
    for name, instead in (("run", rest), ("changed", unheard)):
        setattr(Reclaimer, name, instead)
    sys.exit(main())
