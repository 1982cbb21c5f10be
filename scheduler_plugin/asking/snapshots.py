"""A cluster at one moment, as a value and as a file, with only what the rules need.

    API server ──► Snapshot ──document──► file ──read_document──► Snapshot ──► Books, World

A view of a snapshot prints what the view of the cluster printed when the snapshot was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kube.shapes.reading import JsonObject
from scheduler_plugin.asking.shapes import needs_looks, pruned, shapes, without_messages
from scheduler_plugin.objects.devices.open_looks import SelectedLook
from scheduler_plugin.objects.names import AccountingSettings

KIND = "MoorageSnapshot"
FORMAT = 1
"""The format of the file. Other formats are refused: what they lack would count as absent."""


class SnapshotError(ValueError):
    """Raised if a file is not a snapshot that this version reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        taken_at: The time, in RFC 3339.
        settings: The settings that decide which queue is charged.
        objects: Objects by the plural of their kind, with the fields that `shapes` keeps.
        serves_groups: Whether the cluster serves a kind of PodGroups, or may serve one.
        driver_nodes: The nodes on which pods of the driver run.
        notes: What could not be read, as sentences.
        selected: The results of selectors, if the charges of any Queue depend on them.
        with_looks: Whether it has what selectors read of devices and requests.
    """

    taken_at: str
    settings: AccountingSettings
    objects: Mapping[str, tuple[JsonObject, ...]]
    serves_groups: bool = False
    driver_nodes: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    selected: tuple[SelectedLook, ...] = ()
    with_looks: bool = field(default=False, compare=False)

    def of(self, kind: str) -> tuple[JsonObject, ...]:
        """The objects of a kind."""
        return self.objects.get(kind, ())


def kept(
    kind: str, objects: Iterable[JsonObject], queue_label: str, *, with_looks: bool = False
) -> Iterator[JsonObject]:
    """The parts of objects of one kind that a snapshot keeps; see `shapes`."""
    shape = shapes(queue_label, with_looks=with_looks)[kind]
    return (pruned(obj, shape) for obj in objects)


def changed(snapshot: Snapshot, kind: str, *objects: JsonObject) -> Snapshot:
    """The snapshot with these objects in place of the objects of their names."""
    looks = needs_looks(snapshot.of("queues"))
    shown = tuple(kept(kind, objects, snapshot.settings.queue_label, with_looks=looks))
    names = {key_of(obj) for obj in shown}
    others = (obj for obj in snapshot.of(kind) if key_of(obj) not in names)
    return with_objects(snapshot, kind, (*others, *shown))


def with_objects(snapshot: Snapshot, kind: str, objects: Iterable[JsonObject]) -> Snapshot:
    """The snapshot with these objects as the only ones of their kind."""
    return replace(snapshot, objects={**snapshot.objects, kind: tuple(objects)})


def key_of(obj: JsonObject) -> tuple[str, str]:
    """Namespace, "" without one, and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def document(snapshot: Snapshot, version: str) -> JsonObject:
    """The file's content; it has no secrets, no environment and no messages of handlers."""
    objects = {
        kind: [without_messages(kind, obj) for obj in found]
        for kind, found in snapshot.objects.items()
    }
    return {
        "kind": KIND,
        "format": FORMAT,
        "moorage": version,
        "takenAt": snapshot.taken_at,
        "settings": msgspec.to_builtins(snapshot.settings),
        "servesGroups": snapshot.serves_groups,
        "driverNodes": list(snapshot.driver_nodes),
        "notes": list(snapshot.notes),
        "selected": [list(each) for each in snapshot.selected],
        "objects": objects,
    }


def read_document(found: object) -> Snapshot:
    """The snapshot in a file.

    Raises:
        SnapshotError: If the content is not a snapshot, is damaged, or has another format.
    """
    if not isinstance(found, Mapping) or found.get("kind") != KIND:
        raise SnapshotError(f'kind: must be "{KIND}": this is not a snapshot of Moorage.')
    if found.get("format") != FORMAT:
        raise SnapshotError(
            f"format: this version reads format {FORMAT}, and the snapshot has format"
            f" {found.get('format')} of Moorage {found.get('moorage')}. Take the snapshot again, or"
            " read it with that version."
        )
    try:
        return _read(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotError(f"this snapshot is damaged: {error!r:.200}") from None


def _read(found: Mapping[str, Any]) -> Snapshot:
    settings = msgspec.convert(found["settings"], AccountingSettings)
    looks = needs_looks(found["objects"].get("queues", ()))
    snapshot = Snapshot(
        taken_at=str(found["takenAt"]),
        settings=settings,
        objects={
            kind: tuple(
                kept(
                    kind,
                    found["objects"].get(kind, ()),
                    settings.queue_label,
                    with_looks=looks,
                )
            )
            for kind in shapes(settings.queue_label)
        },
        serves_groups=bool(found["servesGroups"]),
        driver_nodes=tuple(map(str, found["driverNodes"])),
        notes=tuple(map(str, found["notes"])),
        # Earlier snapshots do not have it.
        selected=msgspec.convert(found.get("selected", ()), tuple[SelectedLook, ...]),
        with_looks=looks,
    )
    for obj in (obj for objects in snapshot.objects.values() for obj in objects):
        key_of(obj)
    return snapshot
