"""The cluster's own kubectl: what it says wrongly of what was just made."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster.kubectl import KubectlError, run_kubectl

NIL = "error: .status.conditions accessor error: <nil> is of the type <nil>, expected []interface{}"


def a_kubectl(folder: Path, failures: int) -> str:
    """A program that fails so often with that sentence, and notes each call."""
    program, calls = folder / "kubectl", folder / "calls"
    program.write_text(
        f"#!/bin/sh\necho called >> {calls}\n"
        f'[ "$(wc -l < {calls})" -gt {failures} ] || {{ echo "{NIL}" >&2; exit 1; }}\n'
        "echo met\n"
    )
    program.chmod(0o755)
    return str(program)


def test_wait_waits_for_an_object_that_has_no_status_yet(tmp_path: Path) -> None:
    program = a_kubectl(tmp_path, failures=2)

    done = run_kubectl(program, tmp_path / "none", ("wait", "crd/a"), stdin=None, check=True)

    assert done.stdout == "met\n"
    assert (tmp_path / "calls").read_text() == "called\n" * 3


def test_other_commands_fail_at_once(tmp_path: Path) -> None:
    program = a_kubectl(tmp_path, failures=1)

    with pytest.raises(KubectlError, match="accessor error"):
        run_kubectl(program, tmp_path / "none", ("get", "crd/a"), stdin=None, check=True)
