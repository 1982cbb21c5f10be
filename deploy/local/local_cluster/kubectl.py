"""Runs the cluster's own kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_cluster.errors import LocalClusterError

Manifest = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]


NO_STATUS = "accessor error: <nil>"
"""What `kubectl wait` says of an object that was just made and has no status, without waiting."""

STATUS_SECONDS = 30.0
"""How long such an object may have none."""


class KubectlError(LocalClusterError):
    """Raised when kubectl fails; carries what it printed."""


def run_kubectl(
    program: str, kubeconfig: Path, args: Sequence[str], *, stdin: str | None, check: bool
) -> subprocess.CompletedProcess[str]:
    """What kubectl answers; raises KubectlError where it fails and that is to be checked."""
    deadline = time.monotonic() + STATUS_SECONDS
    done = _once(program, kubeconfig, args, stdin)
    while "wait" in args and NO_STATUS in done.stderr and time.monotonic() < deadline:
        time.sleep(0.1)
        done = _once(program, kubeconfig, args, stdin)
    if check and done.returncode != 0:
        output = (done.stderr + done.stdout).strip()
        raise KubectlError(f"kubectl {' '.join(args)}: {output}")
    return done


def _once(
    program: str, kubeconfig: Path, args: Sequence[str], stdin: str | None
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        [program, *args], input=stdin, env=env, capture_output=True, text=True, check=False
    )


def as_text(manifest: Manifest) -> str:
    """Text as it is, a file's content, one object, or several as a List."""
    if isinstance(manifest, str):
        return manifest
    if isinstance(manifest, Path):
        return manifest.read_text()
    if isinstance(manifest, Mapping):
        return json.dumps(manifest)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifest)})
