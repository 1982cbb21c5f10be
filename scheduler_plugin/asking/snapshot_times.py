"""The time at which a snapshot was taken."""

from __future__ import annotations

from datetime import datetime

from kube.shapes.times import read_time
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.asking.view_errors import CannotAnswerError


def taken_at(snapshot: Snapshot) -> datetime:
    """The time at which a snapshot was taken; ages refer to it.

    Raises:
        CannotTellError: If the snapshot has no valid time.
    """
    found = read_time(snapshot.taken_at)
    if found is None:
        raise CannotAnswerError(
            f'takenAt: "{snapshot.taken_at}" is not a time with a zone (RFC 3339).'
        )
    return found
