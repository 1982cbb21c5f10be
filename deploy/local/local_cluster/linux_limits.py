"""Raises kernel limits that several kubelets on one machine would exhaust."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from local_cluster.progress import say

LIMITS = Path("/proc/sys/fs/inotify")
# A kubelet and its containerd take about 15 instances; Debian allows 128 for all of root.
WANTED: Mapping[str, int] = {"max_user_instances": 8192, "max_user_watches": 524288}


def ensure_limits() -> None:
    """Only ever upwards. They stay raised after `down`: nothing holds them but the kernel."""
    for name, wanted in WANTED.items():
        limit = LIMITS / name
        if int(limit.read_text()) < wanted:
            say(f"raising fs.inotify.{name} to {wanted}")
            limit.write_text(str(wanted))
