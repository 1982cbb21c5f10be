"""Snapshots in files: views of a snapshot, and the command that writes one."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from scheduler_plugin.asking.kubectl_views import view
from scheduler_plugin.asking.snapshots import Snapshot, SnapshotError, document, read_document
from scheduler_plugin.asking.view_errors import CannotAnswerError
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.printing import show

OF_ONE_NAMESPACE = frozenset({"why", "simulate"})
"""Views that need a namespace. A snapshot has no current one, so all other views show all."""


def show_from_file(settings: ViewSettings, file: Path) -> None:
    """Print one view of a snapshot; errors are those of `run_view`."""
    if settings.view in OF_ONE_NAMESPACE and not settings.namespace:
        settings = replace(settings, namespace="default")
    show(view(settings, _from_file(file)), settings.reading)


def _from_file(path: Path) -> Snapshot:
    try:
        return read_document(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, SnapshotError) as error:
        raise CannotAnswerError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CannotAnswerError(f"{path}: this is not JSON: {error}") from None


def write(snapshot: Snapshot, file: str, version: str) -> None:
    """Write a snapshot to a file that only the user can read; "-" prints it.

    Raises:
        CannotTellError: If the file cannot be written.
    """
    text = json.dumps(document(snapshot, version), indent=1) + "\n"
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file)
    part = path.with_name(f"{path.name}.part")
    try:
        # It names pods and claims of all namespaces: only the user may read it.
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
        part.replace(path)
    except OSError as error:
        raise CannotAnswerError(f"{path}: {error.strerror}") from None
