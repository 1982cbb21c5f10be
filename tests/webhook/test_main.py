"""The process: what it says before it gives up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOWHERE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(NOWHERE)
    return file


def ended(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "webhook", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        cwd=Path(__file__).parents[2],
    )


def test_without_a_certificate_it_says_which_file(kubeconfig: Path, tmp_path: Path) -> None:
    missing = tmp_path / "tls.crt"

    key = tmp_path / "tls.key"
    files = (f"--tls-cert-file={missing}", f"--tls-private-key-file={key}")
    done = ended(f"--kubeconfig={kubeconfig}", *files)

    assert done.returncode == 1
    assert f"{missing} and {key} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_certificate_that_is_none_is_refused_too(kubeconfig: Path) -> None:
    files = (f"--tls-cert-file={kubeconfig}", f"--tls-private-key-file={kubeconfig}")

    done = ended(f"--kubeconfig={kubeconfig}", *files)

    assert done.returncode == 1
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_kubeconfig_it_says_so(tmp_path: Path) -> None:
    done = ended(f"--kubeconfig={tmp_path / 'none'}")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
