"""CPU of one call of `kubectl moorage`, beside a bare interpreter and Kubernetes' own client.

    python -m bench.kubectl_calls [--rounds 15] [--claims 100]

Each call is a process of its own that reads a snapshot of so many claims, as kubectl starts it. In
every round each call and each peer runs once, one after the other; figures are user and system time
together, medians over the rounds. The peers do nothing but start: `python -c pass`, and
`import kubernetes.client`, which a plugin in Python commonly begins with.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler_plugin.asking.snapshots import Snapshot, document, kept
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings

RUN = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"
NOTHING, CLIENT = "python -c pass", "import kubernetes.client"
PEERS = {NOTHING: ("-c", "pass"), CLIENT: ("-c", CLIENT)}
VIEWS = (("queues",), ("claims",), ("devices",), ("why", "pod-0"), ("--help",))


def a_snapshot(claims: int) -> Snapshot:
    """So many claims of one queue, each with a device and a pod that waits for it."""
    objects: Mapping[str, list[dict[str, Any]]] = {
        "namespaces": [{"metadata": {"name": "default"}}],
        "queues": [
            {
                "metadata": {"name": "vision", "uid": "q"},
                "spec": {
                    "namespaceSelector": {},
                    "resources": [{"deviceClass": "camera", "quota": claims, "limit": claims}],
                },
            }
        ],
        "deviceclasses": [
            {
                "metadata": {"name": "camera", "labels": {"moorage.dev/configuration": "camera"}},
                "spec": {},
            }
        ],
        "resourceclaims": [_claim(number) for number in range(claims)],
        "pods": [_pod(number) for number in range(claims)],
    }
    found = {kind: tuple(kept(kind, objs, QUEUE_LABEL)) for kind, objs in objects.items()}
    return Snapshot(taken_at="2026-11-22T00:00:00Z", settings=AccountingSettings(), objects=found)


def _claim(number: int) -> dict[str, Any]:
    request = {"name": "camera", "exactly": {"deviceClassName": "camera"}}
    return {
        "metadata": {"namespace": "default", "name": f"claim-{number}", "uid": f"c-{number}"},
        "spec": {"devices": {"requests": [request]}},
        "status": {},
    }


def _pod(number: int) -> dict[str, Any]:
    labels = {QUEUE_LABEL: "vision"}
    name = f"pod-{number}"
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"p-{number}", "labels": labels},
        "spec": {
            "schedulerName": "moorage",
            "resourceClaims": [{"name": "camera", "resourceClaimName": f"claim-{number}"}],
            "containers": [{"name": "main"}],
        },
        "status": {"phase": "Pending"},
    }


def cpu_seconds(argv: tuple[str, ...]) -> float:
    """User and system time of one process of this interpreter."""
    process = subprocess.Popen(
        (sys.executable, *argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: status {process.returncode}")
    return used.ru_utime + used.ru_stime


def measured(calls: Mapping[str, tuple[str, ...]], rounds: int) -> dict[str, list[float]]:
    """CPU of each call in each round; a first round warms the files and does not count."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, argv in calls.items():
            spent = cpu_seconds(argv)
            if number:
                found[name].append(spent)
    return found


def told(found: Mapping[str, list[float]]) -> None:
    for name, seconds in found.items():
        ratios = " ".join(
            f"{statistics.median(a / b for a, b in zip(seconds, found[peer], strict=True)):8.2f}"
            for peer in PEERS
        )
        print(f"{name:24} {statistics.median(seconds) * 1000:8.0f} ms   {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--claims", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "snapshot.json")
        file.write_text(json.dumps(document(a_snapshot(options.claims), "bench")))
        calls = dict(PEERS)
        for words in VIEWS:
            source = () if words == ("--help",) else (f"--snapshot={file}",)
            calls[f"kubectl moorage {words[0]}"] = ("-c", RUN, *words, *source)
        print(f"{'CPU of one call':24} {'median':>11}   ratio to: {', '.join(PEERS)}")
        told(measured(calls, options.rounds))


if __name__ == "__main__":
    main()
