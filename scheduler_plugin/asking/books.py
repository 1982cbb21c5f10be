"""The books of a snapshot: which queue is charged for what.

A view of charges needs only the books of a World: the API does not say what was decided and is not
visible yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kube.shapes.reading import JsonObject, UnreadableError, read_as
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.accounting.books import Books
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.devices.devices import class_view, instance_view, slice_view
from scheduler_plugin.objects.names import AccountingSettings
from scheduler_plugin.objects.pod_objects import namespace_view, pod_group_view
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.objects.projections import project_configuration, project_pod
from scheduler_plugin.objects.queue_objects import parse_queue

T = TypeVar("T")


def books_of(snapshot: Snapshot, *, is_open: bool = False) -> Books:
    """The books of a snapshot; an object that cannot be parsed counts as absent.

    Args:
        snapshot: The snapshot.
        is_open: Whether selectors are to be evaluated whose results the snapshot does not have.
    """
    books = Books(snapshot.settings)
    fill(books, snapshot)
    if not is_open:
        close(books)
    return books


def close(books: Books) -> None:
    """Count every device that a selector was not evaluated for: no result is to come."""
    while opened := books.facts.open_looks.by_expressions():
        for expressions, looks in opened.items():
            books.put_selected(expressions, dict.fromkeys(looks))


def fill(books: Books, snapshot: Snapshot) -> None:
    """Enter all objects of a snapshot, and the results of selectors, into empty books."""
    for expressions, look, answer in snapshot.selected:
        books.put_selected(expressions, {look: answer})
    settings = snapshot.settings
    books.serve_groups(served=snapshot.serves_groups)
    _feed(snapshot.of("deviceclasses"), class_view, books.put_class)
    _feed(snapshot.of("resourceslices"), slice_view, books.put_slice)
    _feed(snapshot.of("configurations"), project_configuration, books.put_configuration)
    _feed(snapshot.of("namespaces"), namespace_view, books.put_namespace)
    _feed(snapshot.of("instances"), instance_view, books.put_instance)
    _feed(
        snapshot.of("devicetaintrules"),
        lambda obj: read_as(DeviceTaintRule, obj),
        books.put_taint_rule,
    )
    _feed(snapshot.of("podgroups"), lambda o: _pod_group(o, settings), books.put_group)
    _feed(snapshot.of("queues"), parse_queue, books.put_queue)
    label = settings.queue_label
    _feed(
        snapshot.of("resourceclaims"), lambda o: claim_view(o, queue_label=label), books.put_claim
    )
    _feed(snapshot.of("pods"), lambda o: project_pod(o, settings), books.put_pod)
    _note_gone(books)


def _pod_group(obj: JsonObject, settings: AccountingSettings) -> PodGroupView:
    return pod_group_view(obj, settings, obj.get("apiVersion") or "")


def _note_gone(books: Books) -> None:
    """Note named claims that the snapshot lacks: all claims were read, so they do not exist."""
    for pod in books.facts.pods():
        for name in pod.claim_names:
            if books.facts.claim_named(pod.namespace, name) is None:
                books.note_gone_claim(pod.namespace, name)


def _feed(
    objects: Iterable[JsonObject],
    view: Callable[[JsonObject], T | None],
    put: Callable[[T], object],
) -> None:
    for obj in objects:
        try:
            found = view(obj)
        except (UnreadableError, KeyError, TypeError, ValueError):
            continue
        if found is not None:
            put(found)
