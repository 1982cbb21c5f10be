"""Queue objects as the API server keeps them, read into a `Queue`.

Its definition refuses every error within one Queue, see `models`. Errors that depend on other
objects, such as cycles, are not checked here.

A later version may have written an entry with fields that this one does not know. Such an entry
counts something else than its other fields say, so it is not read at all, and is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kube.shapes.quantities import thousandths
from kube.shapes.reading import JsonObject, UnreadableError, read_as
from kube.shapes.times import parse_duration
from scheduler_plugin.objects.amounts import NO_CEILING, UNLIMITED, Ceiling, ResourceKey, ceiling
from scheduler_plugin.objects.measures import DEVICES, Definition, Measure
from scheduler_plugin.objects.names import (
    CHARGES_FINALIZER,
    DEFAULT_PRIORITY,
    ClaimSharing,
    OnOwnerExit,
    Queue,
    QueueName,
    Share,
    SharingPolicy,
)
from scheduler_plugin.objects.selectors import selector_of
from scheduler_plugin.shapes import (
    NO_COUNTER,
    NO_QUEUE_SPEC,
    NO_SHARING,
    MeasureFields,
    QueueFields,
    ShareFields,
    SharingFields,
)


def parse_queue(obj: JsonObject | QueueFields) -> Queue:
    """A Queue as the API server returns it; absent fields are the definition's defaults.

    Raises ValueError.
    """
    found = read_as(QueueFields, obj)
    metadata, spec = found.metadata, found.spec or NO_QUEUE_SPEC
    shares, misread = _shares(spec.resources or ())
    return Queue(
        name=QueueName(metadata.name),
        uid=metadata.uid or "",
        generation=metadata.generation or 0,
        has_finalizer=CHARGES_FINALIZER in (metadata.finalizers or ()),
        is_deleting=metadata.deletion_timestamp is not None,
        parent=QueueName(spec.parent or ""),
        namespaces=selector_of(spec.namespace_selector),
        priority=_given(spec.priority, DEFAULT_PRIORITY),
        preempt_min_runtime=_duration(spec.preempt_min_runtime),
        reclaim_min_runtime=_duration(spec.reclaim_min_runtime),
        sharing=_sharing(spec.claim_sharing or NO_SHARING),
        shares=shares,
        misread=misread,
    )


def _sharing(fields: SharingFields) -> ClaimSharing:
    queues, exit_policy = fields.queues, fields.on_owner_exit
    return ClaimSharing(
        policy=_policy(fields.policy),
        queues=None if queues is None else tuple(QueueName(name) for name in queues),
        on_owner_exit=None if exit_policy is None else OnOwnerExit(exit_policy),
        owner_exit_grace_period=_duration(fields.owner_exit_grace_period),
        evict_foreign=_policy(fields.evict_foreign),
        label_at_create=_policy(fields.label_at_create),
    )


def _policy(value: str | None) -> SharingPolicy | None:
    return None if value is None else SharingPolicy(value)


def _shares(entries: Sequence[Any]) -> tuple[dict[ResourceKey, Share], tuple[str, ...]]:
    """The shares by key, and the entries that are not understood, each with its path and why."""
    shares: dict[ResourceKey, Share] = {}
    misread = []
    for number, entry in enumerate(entries):
        try:
            key, share = _share(entry)
        except UnreadableError as error:
            path = f"spec.resources[{number}].{error.path}".removesuffix(".")
            misread.append(f"{path}: {error.message}")
        else:
            shares[key] = share
    return shares, tuple(misread)


def _share(entry: object) -> tuple[ResourceKey, Share]:
    """Raises UnreadableError."""
    fields = read_as(ShareFields, entry)
    definition = _definition(fields)
    quota = _ceiling("quota", fields.quota, 0, definition.measure)
    limit = _ceiling("limit", fields.limit, NO_CEILING, definition.measure)
    # A quota of -1 guarantees all that the queue may use.
    share = Share(
        limit if quota == UNLIMITED else quota,
        limit,
        _given(fields.over_quota_weight, 1),
        None if definition.is_class else definition,
    )
    return definition.key, share


def _definition(fields: ShareFields) -> Definition:
    """Raises UnreadableError."""
    device_class, driver = fields.device_class or "", fields.driver or ""
    if bool(device_class) == bool(driver):
        raise UnreadableError("deviceClass", "Exactly one of deviceClass and driver must be set.")
    return Definition(
        name=fields.name or device_class,
        device_class=device_class,
        driver=driver,
        selector=fields.selector or "",
        measure=DEVICES if fields.measure is None else _measure(fields.measure),
    )


def _measure(fields: MeasureFields) -> Measure:
    """Raises UnreadableError; where a definition drops an unknown field, `{}` is left of it."""
    counter = fields.counter or NO_COUNTER
    found = Measure(fields.capacity or "", counter.set, counter.name)
    if bool(found.capacity) == bool(found.counter):
        raise UnreadableError("measure", "Exactly one of capacity and counter must be set.")
    return found


def _ceiling(field: str, value: int | str | None, default: int, measure: Measure) -> Ceiling:
    """Raises UnreadableError."""
    found = default if value is None else value
    if str(found) == str(NO_CEILING):
        return UNLIMITED
    if measure.is_of_devices and isinstance(found, int):
        return ceiling(found)
    amount = None if measure.is_of_devices else thousandths(found)
    if amount is None:
        what = "a number of devices" if measure.is_of_devices else "a quantity"
        raise UnreadableError(field, f"{found!r} is not {what}.")
    return Ceiling(amount)


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _duration(value: str | None) -> timedelta | None:
    found = None if value is None else parse_duration(value)
    if value is not None and found is None:
        raise ValueError(f"{value!r} is not a duration such as 30s or 5m")
    return found
