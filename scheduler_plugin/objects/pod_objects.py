"""Pods, namespaces and PodGroups as the API server keeps them, read into views."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from sys import intern

from kube.shapes.metadata import Condition, named_metadata
from kube.shapes.pods import (
    NO_CLAIM,
    NO_GROUP,
    NO_SPEC,
    NO_STATUS,
    Pod,
    Spec,
    Status,
)
from kube.shapes.reading import JsonObject, UnreadableError, read_as
from kube.shapes.times import parse_duration
from scheduler_plugin.objects.names import (
    ADMITTED_CONDITION,
    DEVICE_RECLAIMED,
    MIRROR_ANNOTATION,
    MISSED_CONDITION,
    POD_GROUP_ANNOTATION,
    POD_GROUP_LABEL,
    PREEMPTIBILITY_LABELS,
    QUEUE_ANNOTATION,
    RECLAIMING_CONDITION,
    SELECTORS_CONDITION,
    STALE_CONDITION,
    AccountingSettings,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.node_requests import (
    NOTHING,
    WrittenRequests,
    asked_of_node,
    written_requests,
)
from scheduler_plugin.objects.pod_needs import PodNeeds, needs_of
from scheduler_plugin.objects.pods import (
    DEFAULT_SCHEDULER,
    NamespaceView,
    PodClaim,
    PodGroupView,
    PodView,
)
from scheduler_plugin.objects.requests import extended_requests

_TERMINAL = frozenset({"Succeeded", "Failed"})
_NEVER = Condition()
_DIGEST = re.compile(r"\b[0-9a-f]{32}\b")

_NON_PREEMPTIBLE = {"preemptible": False, "non-preemptible": True}
"""The values of the preemptibility labels."""


def pod_view(obj: JsonObject | Pod, settings: AccountingSettings) -> PodView:
    """Parse a Pod of the API server, or of an extender's caller."""
    pod = read_as(Pod, obj)
    metadata, spec, status = pod.metadata, pod.spec or NO_SPEC, pod.status or NO_STATUS
    annotations, labels = metadata.annotations or {}, metadata.labels or {}
    node = intern(spec.node_name or "")
    # Only a binding writes the annotation; on an unbound pod a user wrote it.
    bound_queue = annotations.get(QUEUE_ANNOTATION) if node else None
    extended = status.extended_resource_claim_status or NO_CLAIM
    priority = spec.priority or 0
    gates = tuple(gate.name or "" for gate in spec.scheduling_gates or ())
    conditions = {condition.type: condition for condition in status.conditions or ()}
    scheduled = conditions.get("PodScheduled", _NEVER)
    reclaiming = conditions.get(RECLAIMING_CONDITION, _NEVER)
    missed = conditions.get(MISSED_CONDITION, _NEVER)
    stale = conditions.get(STALE_CONDITION, _NEVER)
    written = written_requests(spec.init_containers, spec.containers, spec.resources, spec.overhead)
    ended, deleting = status.phase in _TERMINAL, metadata.deletion_timestamp is not None
    return PodView(
        namespace=intern(metadata.namespace or ""),
        name=metadata.name,
        uid=PodUid(metadata.uid),
        created=intern(metadata.creation_timestamp or ""),
        bound_at=(scheduled.last_transition_time or "") if node else "",
        queue=QueueName(intern(bound_queue or labels.get(settings.queue_label, ""))),
        queue_is_bound=bool(bound_queue),
        is_mirror=MIRROR_ANNOTATION in annotations,
        group=intern(_group(spec, annotations, labels)),
        scheduling_group=intern(_scheduling_group(spec)),
        nominated=_nominated(spec, status),
        non_preemptible=_non_preemptible(labels, priority, settings),
        node=node,
        ended=ended,
        claims=tuple(_claims(spec, status)) if spec.resource_claims else (),
        requests=extended_requests(spec.init_containers or (), spec.containers or ()),
        extended_claim=extended.resource_claim_name or "",
        extended_resources=frozenset(
            intern(mapping.resource_name or "") for mapping in extended.request_mappings or ()
        ),
        priority=priority,
        gates=gates,
        admission=conditions.get(ADMITTED_CONDITION, _NEVER).reason or "",
        untried=not gates and scheduled.reason == "SchedulingGated",
        reclaiming=reclaiming.status == "True",
        reclaiming_device=(reclaiming.status, reclaiming.reason) == ("True", DEVICE_RECLAIMED),
        held=(reclaiming.message or "") if reclaiming.status == "True" else "",
        too_slow=_digests(conditions.get(SELECTORS_CONDITION, _NEVER)),
        missed=(missed.message or "") if missed.status == "True" else "",
        unschedulable=(scheduled.status, scheduled.reason) == ("False", "Unschedulable"),
        succeeded=status.phase == "Succeeded",
        stale_since=(stale.last_transition_time or "") if stale.status == "True" else "",
        deleting=deleting,
        grace_ends_at=metadata.deletion_timestamp or "",
        scheduler=intern(spec.scheduler_name or DEFAULT_SCHEDULER),
        asked=NOTHING if ended else asked_of_node(written),
        needs=None if node or ended or deleting else _needs(spec, written),
    )


def _needs(spec: Spec, written: WrittenRequests) -> PodNeeds:
    labels = tuple(sorted((spec.node_selector or {}).items()))
    return needs_of(written, labels, spec.affinity, spec.tolerations or (), _asks_for_more(spec))


def _asks_for_more(spec: Spec) -> bool:
    """Whether the pod has constraints that only kube-scheduler checks."""
    affinity, containers = spec.affinity, (*(spec.init_containers or ()), *(spec.containers or ()))
    company = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    ports = (port for container in containers for port in container.ports or ())
    spread = spec.topology_spread_constraints or ()
    return (
        any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes or ())
        or any(c.required_during_scheduling_ignored_during_execution for c in company if c)
        or any(each.when_unsatisfiable != "ScheduleAnyway" for each in spread)
        or any(port.host_port for port in ports)
    )


def _digests(condition: Condition) -> frozenset[str]:
    """The digests of selectors in a condition's message."""
    if condition.status != "True":
        return frozenset()  # Saves time: most pods lack the condition.
    return frozenset(_DIGEST.findall(condition.message or ""))


def namespace_view(obj: JsonObject) -> NamespaceView:
    """Parse a Namespace."""
    metadata = named_metadata(obj)
    return NamespaceView(metadata.name, metadata.labels or {})


def pod_group_view(
    obj: JsonObject, settings: AccountingSettings, api_version: str = ""
) -> PodGroupView:
    """Parse a PodGroup of any API group; its queue is `spec.queue`, else its label."""
    metadata, spec = named_metadata(obj), obj.get("spec") or {}
    queue = spec.get("queue") or (metadata.labels or {}).get(settings.queue_label) or ""
    if not isinstance(queue, str):  # The definition of another vendor may allow any type.
        raise UnreadableError("spec.queue", f"{queue!r:.80} is not a string.")
    return PodGroupView(
        metadata.namespace or "",
        metadata.name,
        QueueName(queue),
        _min_member(spec),
        uid=metadata.uid or "",
        api_version=api_version,
        stale_grace=_stale_grace(spec.get("stalenessGracePeriod")),
        goes_whole=_goes_whole(spec.get("disruptionMode")),
        claims=frozenset(_listed_claims(spec.get("resourceClaims"))),
    )


def _listed_claims(listed: object) -> Iterator[PodClaim]:
    """Entries of any other form are ignored: the definition of another vendor may have them."""
    entries = listed if isinstance(listed, list) else []
    for entry in (each for each in entries if isinstance(each, Mapping)):
        keys = "name", "resourceClaimName", "resourceClaimTemplateName"
        name, claim, template = (_text(entry.get(key)) for key in keys)
        if claim or template:
            yield PodClaim(name, claim, template)


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _goes_whole(mode: object) -> bool:
    """`PodGroup` in v1alpha2, `all` in v1beta1; else pods are disrupted one by one."""
    return mode == "PodGroup" or (isinstance(mode, Mapping) and mode.get("all") is not None)


def _stale_grace(given: object) -> timedelta | None:
    """KAI's grace period; a negative or invalid one means that no pod is evicted."""
    if given is None:
        return None
    found = parse_duration(given) if isinstance(given, str) else None
    return timedelta.max if found is None else found


def _min_member(spec: JsonObject) -> int | None:
    """`minMember` of KAI and coscheduling, or the gang policy of Kubernetes' own PodGroups."""
    policy = spec.get("schedulingPolicy")
    if policy is None:
        return int(spec.get("minMember") or 0) or None
    gang = policy.get("gang")
    return 1 if gang is None else int(gang.get("minCount") or 0) or None


def _group(spec: Spec, annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """The PodGroup: Kubernetes' field, else KAI's annotation, else the coscheduling label."""
    named = _scheduling_group(spec) or annotations.get(POD_GROUP_ANNOTATION)
    return named or labels.get(POD_GROUP_LABEL, "")


def _scheduling_group(spec: Spec) -> str:
    return (spec.scheduling_group or NO_GROUP).pod_group_name or ""


def _nominated(spec: Spec, status: Status) -> str:
    """Only of pods of Kubernetes' own PodGroups: for any other a change of it would be work."""
    is_of_group = bool(_scheduling_group(spec)) and not spec.node_name
    return intern(status.nominated_node_name or "") if is_of_group else ""


def _non_preemptible(
    labels: Mapping[str, str], priority: int, settings: AccountingSettings
) -> bool:
    """Whether a pod is non-preemptible: by a label with a valid value, else by its priority."""
    for key in PREEMPTIBILITY_LABELS:
        if labels.get(key) in _NON_PREEMPTIBLE:
            return _NON_PREEMPTIBLE[labels[key]]
    return priority >= settings.non_preemptible_priority


def _claims(spec: Spec, status: Status) -> Iterator[PodClaim]:
    made = {
        entry.name: entry.resource_claim_name or ""
        for entry in status.resource_claim_statuses or ()
    }
    for entry in spec.resource_claims or ():
        claim = entry.resource_claim_name or made.get(entry.name, "")
        yield PodClaim(
            name=intern(entry.name or ""),
            claim=claim,
            template=intern(entry.resource_claim_template_name or ""),
            is_needless=not claim and entry.name in made,
        )
