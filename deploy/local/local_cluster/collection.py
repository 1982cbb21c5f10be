"""Gathers what explains a failed test: logs, events, and the state of what is not well."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

from local_cluster.control_plane import AUDIT_LOG
from local_cluster.layout import Layout

AUDIT_LINES = 2000
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "events.txt": ("get", "events", "-A", "--sort-by=.lastTimestamp"),
    "nodes.yaml": ("get", "nodes", "-o", "yaml"),
    "pods.txt": ("get", "pods", "-A", "-o", "wide"),
    "pods-described.txt": ("describe", "pods", "-A"),
    "leases.txt": ("get", "leases", "-A", "-o", "wide"),
    "workloads.yaml": (
        "get", "deployments,daemonsets,jobs,validatingwebhookconfigurations", "-A", "-o", "yaml",
    ),
    "devices.yaml": (
        "get", "resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses", "-A",
        "-o", "yaml",
    ),
}  # fmt: skip
Ask = Callable[..., "CompletedProcess[str]"]


def collect(layout: Layout, ask: Ask, target: Path) -> Path:
    """Write everything below `target`. Goes on when the API server does not answer."""
    target.mkdir(parents=True, exist_ok=True)
    for log in sorted(layout.logs.glob("*.log")):
        if log.name == AUDIT_LOG:
            _copy_tail(log, target / AUDIT_LOG)
        else:
            shutil.copy(log, target)
    for node in sorted((layout.work_dir / "nodes").glob("*")):
        logs = layout.node(node.name).private("/var/log/pods")
        # The kubelet removes logs of deleted pods meanwhile; all others are copied.
        with suppress(shutil.Error):
            shutil.copytree(logs, target / "pods" / node.name, dirs_exist_ok=True)
    if ask("get", "--raw", "/readyz", "--request-timeout=5s", check=False).returncode == 0:
        for name, question in QUESTIONS.items():
            done = ask(*question, "--request-timeout=20s", check=False)
            (target / name).write_text(done.stdout + done.stderr)
    return target


def _copy_tail(source: Path, target: Path) -> None:
    with source.open(errors="replace") as log:
        lines = log.readlines()
    target.write_text("".join(lines[-AUDIT_LINES:]))
