"""`kubectl moorage` as a process, and snapshots that it reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler_plugin.asking.snapshots import kept
from scheduler_plugin.objects.names import QUEUE_LABEL
from tests.scheduler_plugin.asking.test_snapshots import a_snapshot, raw, written

RUN = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"

Objects = Mapping[str, list[dict[str, Any]]]


def a_file(folder: Path, objects: Objects | None = None) -> Path:
    """A snapshot of these objects."""
    found = {
        kind: tuple(kept(kind, objs, QUEUE_LABEL)) for kind, objs in (objects or raw()).items()
    }
    file = folder / "snapshot.json"
    file.write_text(json.dumps(written(replace(a_snapshot(), objects=found))))
    return file


def ask(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it in pipes, outside of any cluster."""
    command = (sys.executable, "-c", RUN, *words)
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "KUBE"))}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**variables, **environment}
    )
