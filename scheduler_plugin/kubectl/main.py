"""Runs `kubectl moorage`: prints one view of a snapshot, or of the cluster as it is now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from scheduler_plugin.asking.kubectl_views import CannotTellError, view
from scheduler_plugin.asking.snapshots import Snapshot, SnapshotError, read_document
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.printing import show

OF_ONE_NAMESPACE = frozenset({"why", "simulate"})
"""Views that need a namespace; a snapshot has no current one, so that others show all."""


def run_view(settings: ViewSettings) -> None:
    """Read, and print one view.

    Raises:
        NotThereError: If there is no such object, or no Moorage.
        CannotTellError: If something that is needed cannot be read.
    """
    file = settings.reading.snapshot
    if settings.only_client:
        from scheduler_plugin.asking.versions import Versions, shown_versions

        show(shown_versions(Versions.of_client()), settings.reading)
        return
    if file is None:
        # HTTP, TLS and kubeconfigs take longer to import than a snapshot takes to read.
        from scheduler_plugin.kubectl.live import run_live

        run_live(settings)
        return
    if settings.view in OF_ONE_NAMESPACE and not settings.namespace:
        settings = replace(settings, namespace="default")
    show(view(settings, _from_file(file)), settings.reading)


def _from_file(path: Path) -> Snapshot:
    try:
        return read_document(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, SnapshotError) as error:
        raise CannotTellError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CannotTellError(f"{path}: this is not JSON: {error}") from None
