"""CPU of one call of `kubectl moorage`, beside a bare interpreter, Kubernetes' client and kubectl.

    python -m bench.kubectl_calls [--rounds 15] [--claims 100]

Each call is a process of its own, as kubectl starts it, that reads so many claims: `--snapshot`
from a file, others from an API server (`bench.fake_lists`) through a `kubectl proxy`, whose time
counts.
In every round each call and each peer runs once, one after the other; figures are user and system
time together, children included, medians over the rounds. Peers are `python -c pass`,
`import kubernetes.client`, which a plugin in Python commonly begins with, and kubectl's own
`get --raw /version` of the same server. kubectl is the one on PATH, else that of deploy/local.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import kubernetes
from scheduler_plugin.asking.snapshots import Snapshot, document, kept
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings

RUN = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"
NOTHING, CLIENT = "python -c pass", "import kubernetes.client"
KUBECTL = "kubectl get --raw"
NEWEST = "1.37"
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


def kubectl_program() -> Path:
    """The user's, else the one that clusters of deploy/local are built with."""
    found = shutil.which("kubectl")
    return Path(found or Path(ensure_built(kubernetes(NEWEST)), "kubectl"))


@contextmanager
def fake_lists(snapshot: Path) -> Iterator[Path]:
    """The kubeconfig of an API server that shows the objects of a snapshot."""
    command = (sys.executable, "-m", "bench.fake_lists", str(snapshot))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            file = snapshot.with_name("kubeconfig")
            file.write_text(_kubeconfig(int(server.stdout.readline())))
            yield file
        finally:
            server.terminate()


def _kubeconfig(port: int) -> str:
    context = {"cluster": "fake", "user": "fake"}
    config = {
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fake", "user": {}}],
        "contexts": [{"name": "fake", "context": context}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "Config", **config})


def cpu_seconds(argv: tuple[str, ...]) -> float:
    """User and system time of one process, and of the children that it waits for."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


def told(found: Mapping[str, list[float]], peers: Sequence[str]) -> None:
    for name, seconds in found.items():
        ratios = " ".join(
            f"{statistics.median(a / b for a, b in zip(seconds, found[peer], strict=True)):8.2f}"
            for peer in peers
        )
        print(f"{name:30} {statistics.median(seconds) * 1000:8.0f} ms   {ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--claims", type=int, default=100)
    options = parser.parse_args()
    kubectl = kubectl_program()
    os.environ["PATH"] = f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "snapshot.json")
        file.write_text(json.dumps(document(a_snapshot(options.claims), "bench")))
        with fake_lists(file) as kubeconfig:
            os.environ["KUBECONFIG"] = str(kubeconfig)
            python = sys.executable
            peers = {
                NOTHING: (python, "-c", "pass"),
                CLIENT: (python, "-c", CLIENT),
                KUBECTL: (str(kubectl), "get", "--raw", "/version"),
            }
            calls = dict(peers)
            for words in VIEWS:
                calls[f"kubectl moorage {words[0]}"] = (python, "-c", RUN, *words)
            for words in VIEWS[:-1]:
                argv = (python, "-c", RUN, *words, f"--snapshot={file}")
                calls[f"... {words[0]} --snapshot"] = argv
            print(f"{'CPU of one call':30} {'median':>11}   ratio to: {', '.join(peers)}")
            told(measured(calls, options.rounds), tuple(peers))


if __name__ == "__main__":
    main()
