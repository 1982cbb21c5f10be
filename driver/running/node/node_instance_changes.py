"""Changes of stored Instances: the versions before and after, and whether holders differ."""

from __future__ import annotations

from driver.instances.stored.objects import StoredInstance
from kube.stores.api import Added, Change, Deleted, Modified


def old_and_new(change: Change[StoredInstance]) -> tuple[StoredInstance, ...]:
    match change:
        case Added(_, new):
            return (new,)
        case Deleted(_, old):
            return (old,)
        case Modified(_, old, new):
            return (old, new)


def changes_holders(change: Change[StoredInstance]) -> bool:
    first, *second = (stored.holders for stored in old_and_new(change))
    return first != (second[0] if second else ())
