"""Runs `kubectl moorage`: prints one view of a snapshot, or of the current cluster.

The modules of a view are imported when it is chosen: imports are most of the time of a command.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scheduler_plugin.asking.name_arguments import namespace_name, pod_name
from scheduler_plugin.asking.view_settings import ViewSettings


def run_view(settings: ViewSettings) -> None:
    """Read, and print one view.

    Raises:
        NotThereError: If a named object does not exist, or Moorage is not installed.
        CannotTellError: If something that is needed cannot be read, or a name is not valid.
    """
    with _without_collector():
        _run(_named(settings))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn the cyclic garbage collector off, since a command ends before garbage matters.

    The collector would traverse all imported modules again and again, and at the end once more.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()


def _named(settings: ViewSettings) -> ViewSettings:
    """The settings with checked names; raises CannotTellError if a name is not valid."""
    namespace_name(settings.reading.release_namespace)
    if settings.namespace:
        namespace_name(settings.namespace)
    return replace(settings, name=pod_name(settings.name)) if settings.view == "why" else settings


def _run(settings: ViewSettings) -> None:
    if settings.only_client:
        from scheduler_plugin.kubectl.versions import show_client_version

        show_client_version(settings.reading)
    elif settings.reading.snapshot:
        from scheduler_plugin.kubectl.snapshot_files import show_from_file

        show_from_file(settings, settings.reading.snapshot)
    else:
        from scheduler_plugin.kubectl.live import run_live

        run_live(settings)
