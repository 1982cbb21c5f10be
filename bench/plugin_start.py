"""From the start of the plugin until it serves, in a large cluster; and the memory it takes.

    python -m bench.plugin_start [--claims 10000] [--pods 20000] [--queues 1000] [--rounds 5]

The API server is a fake one (`bench.fake_apiserver`) that has its lists ready, so what is measured
is the plugin's. `imports` is a process that imports the plugin and ends; `transfer` reads the same
lists and throws them away; what is left of `ready` is decoding, projecting and counting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.fake_apiserver import HOLDER
from bench.process_figures import cpu_seconds, peak_mib, resident_mib

READY_SECONDS = 120.0
LISTS = (
    "/api/v1/pods",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/moorage.dev/v1alpha1/queues",
)
IMPORT = "import scheduler_plugin.serve_main, uvloop"


@contextmanager
def fake_apiserver(claims: int, pods: int, queues: int) -> Iterator[int]:
    flags = (f"--claims={claims}", f"--pods={pods}", f"--queues={queues}")
    command = (sys.executable, "-m", "bench.fake_apiserver", *flags)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fake", "user": {"token": "secret"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    }
    path.write_text(json.dumps(config))
    return path


def started(config: Path, log: Path, port: int) -> dict[str, float]:
    """Seconds and MiB of one start."""
    flags = ("--kubeconfig", str(config), "--scheduler-identity", HOLDER)
    pages = f"127.0.0.1:{port}"
    command = (sys.executable, "-m", "bench.as_pod", "scheduler_plugin", "serve", *flags)
    began = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            (*command, "--listen-address", "127.0.0.1:0", "--pages-address", pages), stderr=output
        )
    try:
        wait_until_ready(f"http://{pages}/readyz", log)
        ready = time.perf_counter() - began
        spent, resident = cpu_seconds(process.pid), resident_mib(process.pid)
        peak = peak_mib(process.pid)
    finally:
        process.terminate()
        process.wait(20)
    return {"ready": ready, "CPU": spent, "RSS MiB": resident, "peak MiB": peak}


def wait_until_ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    said = ""
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=READY_SECONDS):
                return
        except urllib.error.HTTPError as error:
            said = error.read().decode()
        except OSError as error:
            said = str(error)
        time.sleep(0.01)
    raise SystemExit(f"not ready: {said}\n{log.read_text()}")


def imported() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
    return time.perf_counter() - began


def transferred(port: int) -> float:
    """Seconds of reading all pages of the large lists one after the other."""
    began = time.perf_counter()
    for path in LISTS:
        token = "0"
        while token:
            url = f"http://127.0.0.1:{port}{path}?limit=500&continue={token}"
            with urllib.request.urlopen(url) as answer:
                head = answer.read()[:200]
            _, found, rest = head.partition(b'"continue": "')
            token = rest.partition(b'"')[0].decode() if found else ""
    return time.perf_counter() - began


def measure(arguments: argparse.Namespace) -> list[dict[str, float]]:
    rounds = []
    sizes = (arguments.claims, arguments.pods, arguments.queues)
    with fake_apiserver(*sizes) as port, TemporaryDirectory(prefix="moorage-bench-") as folder:
        config = kubeconfig(Path(folder), port)
        for _ in range(arguments.rounds):
            parts = {"imports": imported(), "transfer": transferred(port)}
            log = Path(folder) / "plugin.log"
            rounds.append(parts | started(config, log, arguments.port))
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--port", type=int, default=10271, help="on which the plugin listens")
    arguments = parser.parse_args()
    rounds = measure(arguments)
    print(f"{arguments.claims} claims, {arguments.pods} pods, {arguments.queues} queues; medians")
    for name in rounds[0]:
        values = [found[name] for found in rounds]
        unit = "" if "MiB" in name else " s"
        print(f"{name:10}{statistics.median(values):9.2f}{unit}   max {max(values):.2f}")


if __name__ == "__main__":
    main()
