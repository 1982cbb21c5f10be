"""What `kubectl moorage` shows: for each view the same for programs, and for people.

A view imports what it shows when it is asked for: a call lasts a moment, and most of its time goes
into imports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.ages import ago, read_time
from scheduler_plugin.asking.shown import Key, Shown, ToldEvent, told_by
from scheduler_plugin.asking.snapshots import Snapshot, world_of
from scheduler_plugin.asking.tables import (
    charge_table,
    device_table,
    handler_table,
    objects,
    queue_table,
    simulation_text,
    why_text,
)
from scheduler_plugin.asking.view_errors import CannotTellError, NotThereError
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import QueueCondition, QueueName

if TYPE_CHECKING:
    from scheduler_plugin.viewing.why import Why


def no_pod(settings: ViewSettings) -> str:
    """That there is none of that name."""
    where = f"{settings.namespace}/{settings.name}"
    return f"there is no pod {where}, and no Event tells of one."


def taken_at(snapshot: Snapshot) -> datetime:
    """When a snapshot was taken: what is told of times is told as of then.

    Raises:
        CannotTellError: If it does not tell.
    """
    found = read_time(snapshot.taken_at)
    if found is None:
        raise CannotTellError(f'takenAt: "{snapshot.taken_at}" is no time with a zone (RFC 3339).')
    return found


def view(
    settings: ViewSettings, snapshot: Snapshot, labelled: Collection[Key] | None = None
) -> Shown:
    """One view of a snapshot; of its objects only those `labelled`, unless that is None.

    Raises:
        NotThereError: If there is no such object.
        CannotTellError: If a manifest makes no sense.
    """
    found = _VIEWS.get(settings.view)
    if found is None:
        raise CannotTellError(f"a snapshot has no {settings.view}.")
    return found(_Asked(settings, snapshot, world_of(snapshot), labelled))


@dataclass(frozen=True, slots=True)
class _Asked:
    settings: ViewSettings
    snapshot: Snapshot
    world: World
    labelled: Collection[Key] | None

    @property
    def now(self) -> datetime:
        return taken_at(self.snapshot)

    @property
    def wide(self) -> bool:
        return self.settings.reading.output == "wide"

    def has(self, namespace: str, name: str) -> bool:
        """Whether such an object is asked for, whatever its name."""
        wanted = self.settings.namespace
        if wanted and namespace and wanted != namespace:
            return False
        return self.labelled is None or (namespace, name) in self.labelled

    def check_names(self, kind: str, found: Iterable[str]) -> None:
        """Raises NotThereError for a name that no row has."""
        known = set(found)
        missing = [name for name in self.settings.names if name not in known]
        if missing:
            where = f" in namespace {self.settings.namespace}" if kind == CLAIM else ""
            raise NotThereError(f"there is no {kind} {', '.join(missing)}{where}.")

    def nothing(self, kind: str) -> str:
        """As kubectl says it."""
        namespace = self.settings.namespace
        return f"No {kind} found{f' in {namespace} namespace' if namespace else ''}."


CLAIM = "accounted ResourceClaim"


def _queues(asked: _Asked) -> Shown:
    from scheduler_plugin.accounting.figures.share_figures import ShareFigures
    from scheduler_plugin.viewing.queue_rows import queue_rows

    names = asked.settings.names
    every = [row for row in queue_rows(asked.world) if asked.has("", row.queue)]
    asked.check_names("Queue", (row.queue for row in every))
    rows = [row for row in every if not names or row.queue in names]
    figures = ShareFigures(asked.world)
    shares = {
        (str(name), str(key)): amount
        for name in {row.queue for row in rows}
        for key, amount in figures.of(name, 0.0)
    }
    plain = objects(rows)
    for row in plain:
        row["share"] = shares.get((row["queue"], row["device_class"]), 0)
    is_tree = not names and asked.labelled is None
    table = queue_table(rows, shares if asked.wide else None, is_tree=is_tree)
    return Shown(plain, (table,), "No Queues found.")


def _claims(asked: _Asked) -> Shown:
    from scheduler_plugin.viewing.queue_rows import claim_rows

    names = asked.settings.names
    every = [row for row in claim_rows(asked.world) if asked.has(row.namespace, row.name)]
    asked.check_names(CLAIM, (row.name for row in every))
    rows = [row for row in every if not names or row.name in names]
    devices = {_key(obj): _devices_of(obj) for obj in asked.snapshot.of("resourceclaims")}
    plain = objects(rows)
    for row in plain:
        row["devices"] = list(devices.get((row["namespace"], row["name"]), ()))
    return Shown(plain, (charge_table(rows, devices),), asked.nothing("accounted claims"))


def _key(obj: JsonObject) -> Key:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _devices_of(claim: JsonObject) -> tuple[str, ...]:
    """Those that a claim was allocated, each as driver/pool/device and once."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results")
    if not isinstance(results, list):
        return ()  # Of a damaged file; the claim is not among those that are shown.
    parts = ("driver", "pool", "device")
    found = (one for one in results if isinstance(one, Mapping))
    return tuple(dict.fromkeys("/".join(str(one.get(p) or "") for p in parts) for one in found))


def _charge(asked: _Asked) -> Shown:
    from scheduler_plugin.viewing.queue_rows import charge_rows

    name = QueueName(asked.settings.name)
    if name not in asked.world.facts.tree:
        raise NotThereError(f"there is no Queue {name}")
    rows = tuple(charge_rows(asked.world, name))
    return Shown(objects(rows), (charge_table(rows),), f"Queue {name} is charged for nothing.")


def _devices(asked: _Asked) -> Shown:
    from scheduler_plugin.viewing.device_rows import device_rows

    names, of = asked.settings.names, asked.snapshot.of
    every = device_rows(of("resourceslices"), of("instances"), of("resourceclaims"), asked.world)
    asked.check_names("device", (name for row in every for name in (row.name, row.instance)))
    rows = [row for row in every if not names or {row.name, row.instance} & set(names)]
    table = device_table(rows, asked.now, wide=asked.wide)
    return Shown(objects(rows), (table,), "No devices found.")


def _handlers(asked: _Asked) -> Shown:
    from scheduler_plugin.viewing.handler_rows import handler_rows

    found = [c for c in asked.snapshot.of("configurations") if asked.has(*_key(c))]
    rows = tuple(handler_rows(found, asked.snapshot.driver_nodes))
    nothing = asked.nothing("Configurations")
    return Shown(objects(rows), (handler_table(rows, asked.now),), nothing)


def _simulated(asked: _Asked) -> Shown:
    from scheduler_plugin.asking.simulations import Changes, NoChangeError, simulate

    settings = asked.settings
    changes = Changes(
        objects=_manifests(settings.pods),
        queues=_manifests(settings.queues),
        without_devices=settings.without_devices,
        namespace=settings.namespace,
    )
    try:
        found = simulate(asked.snapshot, changes, asked.now)
    except NoChangeError as error:
        raise CannotTellError(str(error)) from None
    return Shown(objects((found,))[0], simulation_text(found))


def _why(asked: _Asked) -> Shown:
    found = why_of(asked.settings, asked.snapshot, asked.world)
    if found is None:
        raise NotThereError(no_pod(asked.settings))
    return shown_why(found, asked.now)


def shown_why(
    found: Why, now: datetime, events: Sequence[ToldEvent] = (), not_read: Sequence[str] = ()
) -> Shown:
    """What is to be said of a pod: programs are told when an Event was, and people how long ago.

    Args:
        found: All but what Events say.
        now: What ages are told of.
        events: Of the pod, the oldest first.
        not_read: What was left out since it may not be read, and what that means.
    """
    exact = (f"{event.when} {event.sentence}" for event in events)
    aged = (f"{ago(event.when, now)} {event.sentence}" for event in events)
    plain = objects((replace(found, told=(*found.told, *exact)),))[0]
    plain["not_read"] = list(not_read)
    return Shown(plain, why_text(replace(found, told=(*found.told, *aged)), not_read))


def why_of(settings: ViewSettings, snapshot: Snapshot, world: World) -> Why | None:
    """With what the pod's conditions say; None where a snapshot has no such pod."""
    from scheduler_plugin.viewing.why import why

    found = why(world, settings.namespace, settings.name, taken_at(snapshot))
    if found is None:
        return None
    told = (*told_by(pod_in(snapshot, settings)), *_told_by_queue(snapshot, found))
    return replace(found, told=told)


def _told_by_queue(snapshot: Snapshot, found: Why) -> Iterator[str]:
    """Why nothing is taken back for a pod that waits, as the Queue's condition says."""
    from scheduler_plugin.viewing.why import ENDED, RUNNING

    waits = found.reason not in (ENDED, RUNNING)
    for queue in snapshot.of("queues") if waits else ():
        conditions = (queue.get("status") or {}).get("conditions") or ()
        for condition in conditions if queue["metadata"]["name"] == found.queue else ():
            if condition.get("type") == QueueCondition.QUOTA_UNMET and condition.get("message"):
                yield f"Queue {found.queue}, {condition['type']}: {condition['message']}"


def pod_in(snapshot: Snapshot, settings: ViewSettings) -> JsonObject:
    """The pod that is asked about; {} where there is none."""
    key = (settings.namespace, settings.name)
    return next((pod for pod in snapshot.of("pods") if _key(pod) == key), {})


_VIEWS: Mapping[str, Callable[[_Asked], Shown]] = {
    "queues": _queues,
    "claims": _claims,
    "charge": _charge,
    "devices": _devices,
    "handlers": _handlers,
    "simulate": _simulated,
    "why": _why,
}


def _manifests(paths: Sequence[Path]) -> list[JsonObject]:
    import yaml

    found: list[JsonObject] = []
    for path in paths:
        try:
            documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            raise CannotTellError(f"{path}: this is not YAML: {error}") from None
        for each in documents:
            if isinstance(each, Mapping):
                found += each["items"] if each.get("kind") == "List" else [each]
            elif each is not None:
                raise CannotTellError(f"{path}: an object is expected.")
    return found
