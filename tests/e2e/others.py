"""Definitions of others' kinds, out of their own Go modules: cert-manager's, and Prometheus'."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

CERT_MANAGER = "github.com/cert-manager/cert-manager@v1.21.2"
PROMETHEUS = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
SUMS = {
    CERT_MANAGER: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    PROMETHEUS: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
}
FILES = {
    CERT_MANAGER: (
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
    ),
    PROMETHEUS: (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
}


def definitions() -> Iterator[Path]:
    """Files of the kinds that the chart's switches make objects of."""
    for module, files in FILES.items():
        folder = _module(module)
        yield from (folder / name for name in files)


def _module(module: str) -> Path:
    """Where Go keeps a module of this name and version."""
    argv = ("go", "mod", "download", "-json", module)
    # Outside of any module: none of ours needs it.
    done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found.get("Sum") == SUMS[module], found
    return Path(found["Dir"])
