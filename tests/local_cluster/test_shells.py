"""What a user's shell is told after a cluster is up."""

from __future__ import annotations

import subprocess
from pathlib import Path

from local_cluster.shells import exports


def said_by(shell: str, text: str) -> str:
    script = f'{text}\nprintf "%s\\n" "$KUBECONFIG" "$PATH"'
    done = subprocess.run(
        (shell, "-euc", script), env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    return done.stdout


def test_exports_reach_the_cluster_and_come_before_what_is_in_the_path() -> None:
    folders = (Path("/cache/a b"), Path("/srv/.venv/bin"), Path("/cache/a b"))

    text = exports(Path("/srv/it's/kubeconfig"), folders)

    expected = "/srv/it's/kubeconfig\n/cache/a b:/srv/.venv/bin:/usr/bin:/bin\n"
    assert said_by("bash", text) == said_by("dash", text) == expected
