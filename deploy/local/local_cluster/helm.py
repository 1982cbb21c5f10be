"""Runs Helm, linked from its own module as every program here is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from local_cluster import programs
from local_cluster.errors import LocalClusterError
from local_cluster.go_toolchain import ensure_built


class HelmError(LocalClusterError):
    """Raised when Helm fails; carries what it printed."""


def run_helm(
    *args: str, kubeconfig: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Helm to its end, on a cluster or on none. It is linked the first time."""
    env = {**os.environ, "KUBECONFIG": str(kubeconfig or os.devnull)}
    program = ensure_built(programs.HELM) / programs.HELM.binaries[0]
    done = subprocess.run(
        [str(program), *args], env=env, capture_output=True, text=True, check=False
    )
    if check and done.returncode != 0:
        raise HelmError(f"helm {' '.join(args)}: {(done.stderr + done.stdout).strip()}")
    return done
