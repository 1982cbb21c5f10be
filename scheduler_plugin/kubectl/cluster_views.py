"""Views of a cluster that is read once, by any client."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kube.kinds import CLAIMS, CONFIGURATIONS, QUEUES
from kube.kubectl_client import ApiReader
from scheduler_plugin.asking.kubectl_views import view
from scheduler_plugin.asking.shown import Key
from scheduler_plugin.asking.snapshots import key_of
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.printing import show
from scheduler_plugin.kubectl.reads import read
from scheduler_plugin.kubectl.release import read_release

NAMESPACED = frozenset({"claims", "why", "simulate"})
"""Views of the current namespace, unless another namespace or all are given."""

_LABELLED = {"queues": QUEUES, "claims": CLAIMS, "handlers": CONFIGURATIONS}


async def show_view(client: ApiReader, settings: ViewSettings) -> None:
    """Read the cluster, and print one view.

    Raises:
        ApiError: If the API server does not answer, or refuses.
        NotThereError: If a named object does not exist, or Moorage is not installed.
        CannotTellError: If a view cannot be made of what was read.
    """
    settings, reading = _in_namespace(settings, client), settings.reading
    if settings.view == "version":
        from scheduler_plugin.kubectl.versions import show_versions

        await show_versions(client, reading)
    elif settings.view == "snapshot":
        from scheduler_plugin.asking.versions import client_version
        from scheduler_plugin.kubectl.snapshot_files import write

        write(
            await read(client, await read_release(client, reading)), settings.file, client_version()
        )
    elif settings.view == "why":
        from scheduler_plugin.kubectl.why import shown_why_of

        show(await shown_why_of(client, await read_release(client, reading), settings), reading)
    else:
        release = await read_release(client, reading)
        labelled = await _labelled(client, settings)
        snapshot = await read(client, release, with_looks=bool(settings.queues))
        show(view(settings, snapshot, labelled), reading)


def _in_namespace(settings: ViewSettings, client: ApiReader) -> ViewSettings:
    if settings.all_namespaces:
        return replace(settings, namespace="")
    if settings.view in NAMESPACED and not settings.namespace:
        return replace(settings, namespace=client.namespace)
    return settings


async def _labelled(client: ApiReader, settings: ViewSettings) -> Collection[Key] | None:
    """The objects that the selector selects, read by labels; None without a selector.

    A snapshot keeps no labels.
    """
    if not settings.selector:
        return None
    resource = _LABELLED[settings.view]
    namespace = settings.namespace if resource.namespaced else ""
    found = await client.list(resource.select(namespace, label_selector=settings.selector))
    return {key_of(obj) for obj in found.items}
