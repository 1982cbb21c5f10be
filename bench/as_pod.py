"""Run a program of ours with what it loads in its pod: a kubeconfig without the official client.

    python -m bench.as_pod driver node --kubeconfig=FILE ...

A pod has a ServiceAccount and never loads that client, which takes more memory than all else.
"""

from __future__ import annotations

import runpy
import ssl
import sys
from pathlib import Path

import yaml

from kube.calls import apiserver
from kube.calls.apiserver_transport import Access


async def kubeconfig_access(kubeconfig: Path | None, context: str = "") -> Access:
    assert kubeconfig
    assert not context
    return simple_access(kubeconfig)


def simple_access(kubeconfig: Path) -> Access:
    """A kubeconfig of one cluster, and of one user with a certificate, a token or nothing."""
    found = yaml.safe_load(kubeconfig.read_text())
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    tls = ssl.create_default_context(cafile=cluster.get("certificate-authority"))
    if "client-certificate" in user:
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    authorization = f"Bearer {user['token']}" if "token" in user else ""

    async def said() -> str:
        return authorization

    return Access(host=cluster["server"], tls=tls, authorization=said)


def main() -> None:
    # Typed, so that mypy tells when the one that it stands in for takes something else.
    apiserver.kubeconfig_access = kubeconfig_access  # type: ignore[attr-defined]
    module, sys.argv = sys.argv[1], sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
