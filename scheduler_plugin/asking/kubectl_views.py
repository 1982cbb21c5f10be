"""The views of `kubectl moorage`, each for programs and for people.

A view imports its modules when it is called, since imports are most of the time of a command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kube.shapes.reading import JsonObject, UnreadableError, read_as
from scheduler_plugin.asking.shapes import needs_looks
from scheduler_plugin.asking.shown import Key, Shown
from scheduler_plugin.asking.snapshot_times import taken_at
from scheduler_plugin.asking.snapshots import Snapshot, key_of
from scheduler_plugin.asking.tables import (
    charge_table,
    device_table,
    handler_table,
    objects,
    queue_table,
    simulation_text,
)
from scheduler_plugin.asking.view_errors import CannotAnswerError, NotThereError
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.objects.names import QueueName

if TYPE_CHECKING:
    from scheduler_plugin.accounting.books import Books
    from scheduler_plugin.asking.simulated_changes import Changes


def view(
    settings: ViewSettings, snapshot: Snapshot, labelled: Collection[Key] | None = None
) -> Shown:
    """One view of a snapshot, of the `labelled` objects only unless that is None.

    Raises:
        NotThereError: If an object that is named does not exist.
        CannotTellError: If a manifest is not valid, or a snapshot does not have the view.
    """
    found = _VIEWS.get(settings.view)
    if found is None:
        raise CannotAnswerError(f"a snapshot does not have the view {settings.view}.")
    return found(_Request(settings, snapshot, labelled))


@dataclass(frozen=True, slots=True)
class _Request:
    settings: ViewSettings
    snapshot: Snapshot
    labelled: Collection[Key] | None

    @property
    def now(self) -> datetime:
        return taken_at(self.snapshot)

    def books(self) -> Books:
        """New books of the snapshot."""
        from scheduler_plugin.asking.books import books_of

        return books_of(self.snapshot)

    @property
    def wide(self) -> bool:
        return self.settings.reading.output == "wide"

    def has(self, namespace: str, name: str) -> bool:
        """Whether namespace and labels of an object are selected; names are checked elsewhere."""
        wanted = self.settings.namespace
        if wanted and namespace and wanted != namespace:
            return False
        return self.labelled is None or (namespace, name) in self.labelled

    def check_names(self, kind: str, found: Iterable[str]) -> None:
        """Raise NotThereError if a name is given that no row has."""
        known = set(found)
        missing = [name for name in self.settings.names if name not in known]
        if missing:
            where = f" in namespace {self.settings.namespace}" if kind == CLAIM else ""
            raise NotThereError(f"there is no {kind} {', '.join(missing)}{where}.")

    def nothing(self, kind: str) -> str:
        """The sentence for an empty table, as kubectl writes it."""
        namespace = self.settings.namespace
        return f"No {kind} found{f' in {namespace} namespace' if namespace else ''}."


CLAIM = "accounted ResourceClaim"


def _queues(request: _Request) -> Shown:
    from scheduler_plugin.accounting.figures.share_figures import ShareFigures
    from scheduler_plugin.objects.measures import amount_value
    from scheduler_plugin.viewing.queue_rows import queue_rows

    names, books = request.settings.names, request.books()
    every = [row for row in queue_rows(books) if request.has("", row.queue)]
    request.check_names("Queue", (row.queue for row in every))
    rows = [row for row in every if not names or row.queue in names]
    figures = ShareFigures(books)
    shares = {
        (name, key): amount
        for name in {row.queue for row in rows}
        for key, amount in figures.of(name, 0.0)
    }
    plain = objects(rows)
    for shown, row in zip(plain, rows, strict=True):
        key = row.device_class
        shown["share"] = amount_value(key, shares.get((row.queue, key), 0))
    is_tree = not names and request.labelled is None
    table = queue_table(rows, shares if request.wide else None, is_tree=is_tree)
    return Shown(plain, (table,), "No Queues found.")


def _claims(request: _Request) -> Shown:
    from scheduler_plugin.viewing.queue_rows import claim_rows

    names = request.settings.names
    every = [row for row in claim_rows(request.books()) if request.has(row.namespace, row.name)]
    request.check_names(CLAIM, (row.name for row in every))
    rows = [row for row in every if not names or row.name in names]
    devices = {key_of(obj): _devices_of(obj) for obj in request.snapshot.of("resourceclaims")}
    plain = objects(rows)
    for row in plain:
        row["devices"] = list(devices.get((row["namespace"], row["name"]), ()))
    return Shown(plain, (charge_table(rows, devices),), request.nothing("accounted claims"))


def _devices_of(claim: JsonObject) -> tuple[str, ...]:
    """The devices that are allocated to a claim, each once as driver/pool/device."""
    from kube.shapes.claims import Claim

    try:
        results = read_as(Claim, claim).results
    except UnreadableError:
        return ()  # The file is damaged, and no row shows the claim.
    found = (f"{one.driver or ''}/{one.pool or ''}/{one.device or ''}" for one in results)
    return tuple(dict.fromkeys(found))


def _charge(request: _Request) -> Shown:
    from scheduler_plugin.viewing.queue_rows import charge_rows

    name, books = QueueName(request.settings.name), request.books()
    if name not in books.facts.tree:
        raise NotThereError(f"there is no Queue {name}.")
    rows = tuple(charge_rows(books, name))
    return Shown(objects(rows), (charge_table(rows),), f"Queue {name} is charged for nothing.")


def _devices(request: _Request) -> Shown:
    from scheduler_plugin.viewing.device_rows import device_rows

    names, of = request.settings.names, request.snapshot.of
    every = device_rows(
        of("resourceslices"), of("instances"), of("resourceclaims"), request.books()
    )
    request.check_names("device", (name for row in every for name in (row.name, row.instance)))
    rows = [row for row in every if not names or {row.name, row.instance} & set(names)]
    table = device_table(rows, request.now, wide=request.wide)
    return Shown(objects(rows), (table,), "No devices found.")


def _handlers(request: _Request) -> Shown:
    from scheduler_plugin.viewing.handler_rows import handler_rows

    found = [c for c in request.snapshot.of("configurations") if request.has(*key_of(c))]
    rows = tuple(handler_rows(found, request.snapshot.driver_nodes))
    nothing = request.nothing("Configurations")
    return Shown(objects(rows), (handler_table(rows, request.now),), nothing)


def _simulated(request: _Request) -> Shown:
    from scheduler_plugin.asking.simulated_changes import Changes, NoChangeError
    from scheduler_plugin.asking.simulations import simulate

    settings = request.settings
    changes = Changes(
        objects=_manifests(settings.pods),
        queues=_manifests(settings.queues),
        without_devices=settings.without_devices,
        namespace=settings.namespace,
    )
    try:
        known = _with_results(request, changes)
        found = simulate(known, changes, request.now)
    except NoChangeError as error:
        raise CannotAnswerError(str(error)) from None
    notes = tuple(said for said in known.notes if said not in request.snapshot.notes)
    found = replace(found, notes=notes)
    return Shown(objects((found,))[0], simulation_text(found))


def _with_results(request: _Request, changes: Changes) -> Snapshot:
    """The snapshot with the results of selectors that matter once it is changed."""
    from scheduler_plugin.asking.simulated_changes import with_queues
    from scheduler_plugin.asking.simulations import with_changes

    snapshot = request.snapshot
    if not needs_looks(with_queues(snapshot, changes.queues).of("queues")):
        return snapshot
    from scheduler_plugin.asking.cel_processes import with_selected

    return with_selected(snapshot, with_changes(snapshot, changes, request.now))


def _why(request: _Request) -> Shown:
    from scheduler_plugin.asking.shown_pods import no_pod, shown_why, why_of

    key = (request.settings.namespace, request.settings.name)
    found = why_of(request.snapshot, key)
    if found is None:
        raise NotThereError(no_pod(key))
    return shown_why(found, request.now)


_VIEWS: Mapping[str, Callable[[_Request], Shown]] = {
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
            raise CannotAnswerError(f"{path}: this is not YAML: {error}") from None
        for each in documents:
            if isinstance(each, Mapping):
                found += each["items"] if each.get("kind") == "List" else [each]
            elif each is not None:
                raise CannotAnswerError(f"{path}: each document must be an object.")
    return found
