"""A process that binds a pod, once, in a given time; a test stops it meanwhile."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import uvloop

from kube.calls.api import ApiError, WriteOptions, connect
from kube.kinds import PODS


async def write(kubeconfig: Path, seconds: float) -> str:
    """What became of it."""
    metadata = {"name": "pod", "namespace": "default"}
    target = {"apiVersion": "v1", "kind": "Node", "name": "node"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    options = WriteOptions(timeout_seconds=seconds)
    async with connect(kubeconfig) as client:
        try:
            await client.create(PODS, body, subresource="binding", options=options)
        except ApiError as error:
            return str(error)
    return "written"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    # As the plugin runs: what its loop does first when it wakes up is the point.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(write(given.kubeconfig, given.seconds)))  # noqa: T201  To whoever started it.


if __name__ == "__main__":
    main()
