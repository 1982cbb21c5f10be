"""A real control plane without controllers, and what its parts say of themselves.

Of the cluster only etcd, kube-apiserver and the kube-scheduler `moorage` run, so that what is
counted is theirs and the extender's. Extenders run beside kube-scheduler, on its loopback.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.process_figures import cpu_seconds
from local_cluster.addresses import MOORAGE_SCHEDULER_PORT
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from local_cluster.layout import layout_of
from local_cluster.linux_commands import in_network

ROOT = Path(__file__).resolve().parents[1]
WORK_DIR = ROOT / ".cluster-bench"
SCHEDULER_PART = "kube-scheduler-moorage"
LEASE = f"kube-system/{SCHEDULER_PART}"
EXTENDER_PORT = 10261
PAGES_PORT = 10262
PLUGIN_ACCOUNT = ("moorage-system", "scheduler-plugin")
NOT_COUNTED = frozenset({"leases", "subjectaccessreviews", "tokenreviews", "deviceclasses", ""})
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
EXTENDER = {
    "urlPrefix": f"http://127.0.0.1:{EXTENDER_PORT}",
    "filterVerb": "filter",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
    "nodeCacheCapable": True,
    "httpTimeout": "10s",
}
# kube-scheduler's own defaults: with the short times of tests it loses its Lease to the load.
# What limits the load is the cluster, not how often a client may ask.
CONNECTION = {"qps": 5000, "burst": 10000}
LEADER_ELECTION = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}

Sample = tuple[str, Mapping[str, str], float]


@contextmanager
def control_plane(
    nodes: int, work_dir: Path = WORK_DIR, *, feature_gates: Mapping[str, bool] | None = None
) -> Iterator[Cluster]:
    """Audit is off: writing every body of every write down is no part of scheduling."""
    parts = (*CONTROL_PLANE, SCHEDULER_PART)
    settings = ClusterSettings(
        work_dir=work_dir,
        nodes=0,
        fake_nodes=nodes,
        parts=parts,
        audit=False,
        feature_gates=feature_gates or {},
    )
    cluster = Cluster.up(settings)
    try:
        # Nobody here looks at the nodes' Leases, and their renewal costs the API server time.
        cluster.part("fake-nodes").stop()
        cluster.part(SCHEDULER_PART).kill()
        install(cluster)
        yield cluster
    finally:
        cluster.down(purge=True)


def install(cluster: Cluster) -> None:
    """Our kinds, and the account under which extenders speak to the API server."""
    namespace, account = PLUGIN_ACCOUNT
    for path in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
        cluster.apply(path)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    cluster.kubectl("create", "namespace", namespace)
    subject = f"--serviceaccount={namespace}:{account}"
    cluster.kubectl("create", "clusterrolebinding", account, "--clusterrole=cluster-admin", subject)


def policies(cluster: Cluster, *, installed: bool) -> None:
    """What keeps everybody but the binder from saying whose a claim is."""
    folder = str(ROOT / "deploy" / "policies")
    if installed:
        cluster.kubectl("apply", "-f", folder)
    else:
        cluster.kubectl("delete", "--ignore-not-found", "-f", folder)


@contextmanager
def scheduler(cluster: Cluster, *, extended: bool, **settings: object) -> Iterator[None]:
    """A kube-scheduler that has just been started, with the extender or without.

    `settings` are more of its configuration.
    """
    extenders = [EXTENDER] if extended else []
    overlay = {
        "extenders": extenders,
        "leaderElection": LEADER_ELECTION,
        "clientConnection": CONNECTION,
        **settings,
    }
    cluster.reconfigure(scheduler_overlay=overlay)
    cluster.part(SCHEDULER_PART).start()
    try:
        yield
    finally:
        cluster.part(SCHEDULER_PART).kill()


async def while_scheduler_runs(cluster: Cluster, awaited: Coroutine[Any, Any, object]) -> None:
    """Wait for what kube-scheduler does; where it ends or begins anew, exit with a sentence.

    On a machine that is too busy it cannot renew its Lease in time, and ends.
    """
    part = cluster.part(SCHEDULER_PART)
    began_as, task = part.pid, asyncio.ensure_future(awaited)
    try:
        while not (await asyncio.wait((task,), timeout=1.0))[0]:
            if part.pid is None or part.pid != began_as:
                raise SystemExit(f"kube-scheduler ended while it was measured: {part.log_path}")
    finally:
        task.cancel()


def end_scheduler(cluster: Cluster) -> None:
    """Kill it, and let its successor not wait for its Lease."""
    cluster.part(SCHEDULER_PART).kill()
    namespace, name = LEASE.split("/")
    cluster.kubectl("delete", "lease", "-n", namespace, name, "--ignore-not-found")


@contextmanager
def beside_scheduler(cluster: Cluster, name: str, argv: Sequence[str], ready: str) -> Iterator[int]:
    """Run a program of ours on kube-scheduler's loopback; yields its pid.

    `ready` is the port and path at which it says so.
    """
    network = layout_of(cluster.work_dir).network_namespace
    command = in_network(network, (sys.executable, *argv))
    with (cluster.logs / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_until_ready(network, ready)
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def wait_until_ready(network: str, ready: str) -> None:
    url = f"http://127.0.0.1:{ready}"
    retry = ("--retry", "600", "--retry-delay", "0", "--retry-max-time", "60", "--retry-all-errors")
    command = in_network(network, ("curl", "--silent", "--show-error", "--fail", *retry, url))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def until_idle(pid: int | None, seconds: float = 2.0) -> None:
    """Wait until a process takes less than a twentieth of a core."""
    spent = -1.0
    while pid is not None and spent < (now := cpu_seconds(pid)) - seconds / 20:
        spent = now
        time.sleep(seconds)


def api_requests(cluster: Cluster) -> Counter[str]:
    """Requests so far by verb and resource: no watches, no Leases, no health."""
    with cluster.api() as api:
        samples = list(parsed(api.get("/metrics")))
    counts: Counter[str] = Counter()
    for name, labels, value in samples:
        if name == "apiserver_request_total" and labels["resource"] not in NOT_COUNTED:
            resource = f"{labels['resource']}/{labels['subresource']}".rstrip("/")
            if labels["verb"] not in {"WATCH", "CONNECT"}:
                counts[f"{labels['verb']} {resource}"] += int(value)
    return counts


def scheduler_samples(cluster: Cluster) -> list[Sample]:
    """The metrics of kube-scheduler, whose certificate nobody signed."""
    pki = layout_of(cluster.work_dir).pki
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    url = f"https://{cluster.address}:{MOORAGE_SCHEDULER_PORT}/metrics"
    with urllib.request.urlopen(url, context=context, timeout=30) as answer:
        return list(parsed(answer.read().decode()))


def unschedulable_pods(cluster: Cluster) -> int:
    """Pods that kube-scheduler tried in vain and has put aside."""
    for name, labels, value in scheduler_samples(cluster):
        if name == "scheduler_pending_pods" and labels["queue"] == "unschedulable":
            return int(value)
    return 0


def parsed(text: str) -> Iterator[Sample]:
    """The samples of a page of metrics."""
    for line in text.splitlines():
        if match := SAMPLE.match(line):
            name, labels, value = match.groups()
            yield name, dict(LABEL.findall(labels or "")), float(value)


def until_steady(read: Callable[[], Counter[str]], seconds: float = 1.5) -> Counter[str]:
    """The first value that stays for a while: kube-scheduler writes its Events late."""
    found = read()
    while True:
        time.sleep(seconds)
        before, found = found, read()
        if found == before:
            return found
