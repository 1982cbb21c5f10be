"""Runs the machine's system commands and turns their failures into sentences."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from local_cluster.errors import MachineError


def run(*argv: str, timeout_seconds: float = 60) -> str:
    """Standard output of a command that must succeed."""
    done = attempt(*argv, timeout_seconds=timeout_seconds)
    if done.returncode != 0:
        raise MachineError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def attempt(*argv: str, timeout_seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command whose failure is an answer, too."""
    try:
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=timeout_seconds
        )
    except FileNotFoundError as error:
        raise MachineError(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"{' '.join(argv)}: no answer in {timeout_seconds:.0f} s") from error


def in_network(namespace: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The same command inside a network namespace; the caller becomes it, no process between."""
    return ("nsenter", f"--net=/run/netns/{namespace}", "--", *argv)


def in_namespaces_of(pid: int, argv: Sequence[str]) -> tuple[str, ...]:
    """The same command inside a node. nsenter forks and stays as the command's parent."""
    return (
        "nsenter",
        f"--target={pid}",
        "--mount",
        "--uts",
        "--net",
        "--pid",
        "--root",
        "--wd",
        "--",
        *argv,
    )
