"""Queue objects as the API server keeps them, read into a `Queue`.

Its definition refuses all that one Queue can get wrong, see `models`. What another object decides,
such as cycles, is not asked.
"""

from __future__ import annotations

from datetime import timedelta

from kube.shapes.reading import JsonObject
from kube.shapes.times import parse_duration
from scheduler_plugin.objects.amounts import NO_CEILING, UNLIMITED, ResourceKey, ceiling
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
from scheduler_plugin.objects.selectors import LabelSelector, Operator, Requirement


def parse_queue(obj: JsonObject) -> Queue:
    """A Queue as the API server returns it; absent fields are the definition's defaults."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    return Queue(
        name=QueueName(metadata["name"]),
        uid=metadata.get("uid") or "",
        generation=metadata.get("generation") or 0,
        is_kept=CHARGES_FINALIZER in (metadata.get("finalizers") or ()),
        is_deleting=metadata.get("deletionTimestamp") is not None,
        parent=QueueName(spec.get("parent") or ""),
        namespaces=_selector(spec.get("namespaceSelector")),
        priority=_given(spec, "priority", DEFAULT_PRIORITY),
        preempt_min_runtime=_duration(spec.get("preemptMinRuntime")),
        reclaim_min_runtime=_duration(spec.get("reclaimMinRuntime")),
        sharing=_sharing(spec.get("claimSharing") or {}),
        shares=dict(_share(fields) for fields in spec.get("resources") or ()),
    )


def _sharing(fields: JsonObject) -> ClaimSharing:
    queues, exit_policy = fields.get("queues"), fields.get("onOwnerExit")

    def policy(name: str) -> SharingPolicy | None:
        value = fields.get(name)
        return None if value is None else SharingPolicy(value)

    return ClaimSharing(
        policy=policy("policy"),
        queues=None if queues is None else tuple(QueueName(name) for name in queues),
        on_owner_exit=None if exit_policy is None else OnOwnerExit(exit_policy),
        owner_exit_grace_period=_duration(fields.get("ownerExitGracePeriod")),
        evict_foreign=policy("evictForeign"),
        label_at_create=policy("labelAtCreate"),
    )


def _share(fields: JsonObject) -> tuple[ResourceKey, Share]:
    quota = ceiling(_given(fields, "quota", 0))
    limit = ceiling(_given(fields, "limit", NO_CEILING))
    # All that the queue may use is guaranteed.
    share = Share(
        limit if quota == UNLIMITED else quota, limit, _given(fields, "overQuotaWeight", 1)
    )
    return ResourceKey(fields["deviceClass"]), share


def _given(fields: JsonObject, name: str, default: int) -> int:
    value = fields.get(name)
    return default if value is None else value


def _duration(value: str | None) -> timedelta | None:
    found = None if value is None else parse_duration(value)
    if value is not None and found is None:
        raise ValueError(f"{value!r} is not a duration such as 30s or 5m")
    return found


def _selector(fields: JsonObject | None) -> LabelSelector | None:
    """As everywhere in Kubernetes, absent selects nothing and `{}` everything."""
    if fields is None:
        return None
    labels, expressions = fields.get("matchLabels") or {}, fields.get("matchExpressions") or ()
    return LabelSelector(
        (
            *(Requirement(key, Operator.IN, (label,)) for key, label in labels.items()),
            *(
                Requirement(e["key"], Operator(e["operator"]), tuple(e.get("values") or ()))
                for e in expressions
            ),
        )
    )
