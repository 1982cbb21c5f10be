"""Queue objects as the API server keeps them, read into a `Queue`.

Its definition refuses all that one Queue can get wrong, see `models`; only types are looked at
here, as in every object. What another object decides, such as cycles, is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_plugin.objects.amounts import NO_CEILING, UNLIMITED, ResourceKey, ceiling
from scheduler_plugin.objects.fields import (
    JsonObject,
    a_list,
    an_object,
    duration,
    number,
    objects,
    own_text,
    readable,
    text,
    texts,
    word,
)
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


@readable
def parse_queue(obj: object) -> Queue:
    """A Queue as the API server returns it; absent fields are the definition's defaults."""
    top = an_object(obj, "")
    metadata = an_object(top.get("metadata"), "metadata")
    spec = an_object(top.get("spec"), "spec")
    return Queue(
        name=QueueName(own_text(metadata.get("name"), "metadata.name")),
        uid=text(metadata.get("uid"), "metadata.uid"),
        generation=number(metadata.get("generation"), "metadata.generation", default=0),
        is_kept=CHARGES_FINALIZER in a_list(metadata.get("finalizers"), "metadata.finalizers"),
        is_deleting=metadata.get("deletionTimestamp") is not None,
        parent=QueueName(text(spec.get("parent"), "spec.parent")),
        namespaces=_selector(spec.get("namespaceSelector"), "spec.namespaceSelector"),
        priority=number(spec.get("priority"), "spec.priority", default=DEFAULT_PRIORITY),
        preempt_min_runtime=duration(spec.get("preemptMinRuntime"), "spec.preemptMinRuntime"),
        reclaim_min_runtime=duration(spec.get("reclaimMinRuntime"), "spec.reclaimMinRuntime"),
        sharing=_sharing(an_object(spec.get("claimSharing"), "spec.claimSharing")),
        shares=dict(
            _share(fields, path)
            for path, fields in objects(spec.get("resources"), "spec.resources")
        ),
    )


def _sharing(fields: JsonObject) -> ClaimSharing:
    path, queues = "spec.claimSharing", fields.get("queues")
    names = (text(name, f"{path}.queues") for name in a_list(queues, f"{path}.queues"))

    def a_word(name: str) -> SharingPolicy | None:
        return word(fields.get(name), f"{path}.{name}", SharingPolicy)

    grace = "ownerExitGracePeriod"
    return ClaimSharing(
        policy=a_word("policy"),
        queues=None if queues is None else tuple(QueueName(name) for name in names),
        on_owner_exit=word(fields.get("onOwnerExit"), f"{path}.onOwnerExit", OnOwnerExit),
        owner_exit_grace_period=duration(fields.get(grace), f"{path}.{grace}"),
        evict_foreign=a_word("evictForeign"),
        label_at_create=a_word("labelAtCreate"),
    )


def _share(fields: JsonObject, path: str) -> tuple[ResourceKey, Share]:
    key = ResourceKey(own_text(fields.get("deviceClass"), f"{path}.deviceClass"))
    quota = ceiling(number(fields.get("quota"), f"{path}.quota", default=0))
    limit = ceiling(number(fields.get("limit"), f"{path}.limit", default=NO_CEILING))
    # All that the queue may use is guaranteed.
    weight = number(fields.get("overQuotaWeight"), f"{path}.overQuotaWeight", default=1)
    return key, Share(limit if quota == UNLIMITED else quota, limit, weight)


def _selector(value: object, path: str) -> LabelSelector | None:
    """As everywhere in Kubernetes, absent selects nothing and `{}` everything."""
    if value is None:
        return None
    fields = an_object(value, path)
    labels = texts(fields.get("matchLabels"), f"{path}.matchLabels")
    expressions = objects(fields.get("matchExpressions"), f"{path}.matchExpressions")
    return LabelSelector(
        (
            *(Requirement(key, Operator.IN, (label,)) for key, label in labels.items()),
            *(_requirement(fields, where) for where, fields in expressions),
        )
    )


def _requirement(fields: Mapping[str, Any], path: str) -> Requirement:
    values = a_list(fields.get("values"), f"{path}.values")
    return Requirement(
        own_text(fields.get("key"), f"{path}.key"),
        word(fields.get("operator"), f"{path}.operator", Operator) or Operator.EXISTS,
        tuple(text(value, f"{path}.values") for value in values),
    )
