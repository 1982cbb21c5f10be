"""A process that wants to lead, for stories about its death.

    python -m tests.e2e.kube_candidate KUBECONFIG LEASE NAMESPACE IDENTITY

It prints one line for each thing that happens, with the machine's monotonic time.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from kube.calls.api import connect
from kube.leases.api import ElectionSettings, LeaderElector, LeadershipLostError

SETTINGS = ElectionSettings(lease_seconds=9, renew_deadline_seconds=6.0, retry_seconds=0.4)


def say(what: str) -> None:
    print(f"{time.monotonic():.3f} {what}", flush=True)  # noqa: T201


async def lead(elector: LeaderElector) -> None:
    say("leading")
    try:
        while True:
            await asyncio.sleep(0.05)
            say(f"working {elector.seconds_left():.3f}")
    finally:
        say("stopped")


async def main(kubeconfig: str, lease: str, namespace: str, identity: str) -> None:
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with connect(Path(kubeconfig)) as client:
        elector = LeaderElector(client, lease, namespace, identity, SETTINGS)
        say("waiting")
        try:
            await elector.lead(lambda: lead(elector))
        except LeadershipLostError:
            say("lost")


if __name__ == "__main__":
    with suppress(asyncio.CancelledError):
        asyncio.run(main(*sys.argv[1:]))
