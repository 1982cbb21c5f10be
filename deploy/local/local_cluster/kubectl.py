"""Runs the cluster's own kubectl."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_cluster.errors import LocalClusterError

Manifest = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class KubectlError(LocalClusterError):
    """Raised when kubectl fails; carries what it printed."""


def run_kubectl(
    program: str, kubeconfig: Path, args: Sequence[str], *, stdin: str | None, check: bool
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(
        [program, *args], input=stdin, env=env, capture_output=True, text=True, check=False
    )
    if check and done.returncode != 0:
        output = (done.stderr + done.stdout).strip()
        raise KubectlError(f"kubectl {' '.join(args)}: {output}")
    return done


def as_text(manifest: Manifest) -> str:
    """Text as it is, a file's content, one object, or several as a List."""
    if isinstance(manifest, str):
        return manifest
    if isinstance(manifest, Path):
        return manifest.read_text()
    if isinstance(manifest, Mapping):
        return json.dumps(manifest)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifest)})
