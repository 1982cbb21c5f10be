"""A cluster, read once for a view."""

from __future__ import annotations

from kube.kubectl_client import ApiReader, wall_clock
from scheduler_plugin.accounting_arguments import ReleaseSettings
from scheduler_plugin.asking.apiserver_snapshots import SnapshotReader
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.kubectl.printing import note, progress


async def read(
    client: ApiReader, release: ReleaseSettings, *, with_looks: bool = False
) -> Snapshot:
    """A snapshot; each kind that could not be read gets a line on standard error.

    `with_looks` keeps what selectors read, also where no Queue needs it yet.
    """
    with progress() as report:
        settings = release.accounting, release.pod_groups
        snapshot = await SnapshotReader(client, *settings, report, with_looks).read(wall_clock())
    for sentence in snapshot.notes:
        note(sentence)
    return snapshot
