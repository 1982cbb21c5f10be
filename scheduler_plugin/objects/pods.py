"""Pods, and what says which queue they belong to: namespaces and PodGroups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    NO_QUEUE,
    POD_GROUP_ANNOTATION,
    POD_GROUP_LABEL,
    PREEMPTIBILITY_LABELS,
    QUEUE_ANNOTATION,
    QUOTA_GATE,
    RECLAIMING_CONDITION,
    SELECTORS_CONDITION,
    STALE_CONDITION,
    AccountingSettings,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.node_requests import (
    NOTHING,
    Thousandths,
    WrittenRequests,
    asked_of_node,
    written_requests,
)
from scheduler_plugin.objects.pod_needs import PodNeeds, PodOnNode, needs_of
from scheduler_plugin.objects.requests import extended_requests

DEFAULT_SCHEDULER = "default-scheduler"

_TERMINAL = frozenset({"Succeeded", "Failed"})
_NEVER = Condition()
_DIGEST = re.compile(r"\b[0-9a-f]{32}\b")

_NON_PREEMPTIBLE = {"preemptible": False, "non-preemptible": True}
"""What the preemptibility label says."""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of `spec.resourceClaims`.

    Attributes:
        claim: Name of the ResourceClaim; "" while it is not made, or where none is needed.
        template: Name of the ResourceClaimTemplate that it is made of; "" for a named claim.
        is_needless: Whether the pod's status says that none is made of the template.
    """

    name: str
    claim: str = ""
    template: str = ""
    is_needless: bool = False

    @property
    def is_to_be_made(self) -> bool:
        """Whether a claim is still to be made of a template."""
        return bool(self.template) and not self.claim and not self.is_needless


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A Pod.

    Attributes:
        created: As the API writes it, so that text sorts as time does.
        bound_at: When it was bound, likewise; "" where it is not, or nothing tells.
        queue: Queue of the label or, once bound, of its binding's annotation; "" for neither.
        queue_is_bound: Whether the queue is that of its binding, which was judged.
        is_mirror: Whether a kubelet shows a static pod by it, which nobody judged.
        group: Name of its PodGroup in its namespace; "" for none.
        requests: Effective requests of extended resources, by name.
        extended_claim: The claim that kube-scheduler made for extended resources; "" for none.
            After an attempt that failed the name stays, and the claim is deleted.
        extended_resources: The resources that this claim covers.
        gates: Its scheduling gates: while there is one, kube-scheduler leaves it alone.
        admission: Reason of the condition that says what it waits for; "" where there is none.
        untried: Whether it came out of its gates and kube-scheduler has not tried it since.
        succeeded: Whether it ended well.
        stale_since: Since when its PodGroup has had too few pods, as its condition says; "" where
            it has not.
        reclaiming: Whether its condition says that room is held for it.
        reclaiming_device: Whether that is a device, which is on its way to it.
        held: What that condition says of which and where, see `read_held`.
        too_slow: Digests of its selectors that take too long, as a condition of it says.
        missed: What another says of where room was held for it in vain, see `read_missed`.
        unschedulable: Whether kube-scheduler tried it and found no node. It may say so of what it
            found long ago, or of our own refusal.
        deleting: Whether it is on its way out; until it is gone it may still run.
        leaves_at: When its grace is over then, as `created`; "" where it is not.
        scheduler: The scheduler that it names; one that names none has Kubernetes' own.
        asked: What it takes of its node, or would, by resource in thousandths; nothing once it
            has ended.
        needs: What else decides on which nodes it fits, its claims apart; None where it may not
            be bound any more. While it is gated a user may narrow it down, so it is compared.
        claim_names: All claims that exist for it, in the order of its spec.
    """

    namespace: str
    name: str
    uid: PodUid
    created: str = ""
    bound_at: str = ""
    queue: QueueName = NO_QUEUE
    group: str = ""
    non_preemptible: bool = False
    node: str = ""
    ended: bool = False
    claims: tuple[PodClaim, ...] = ()
    requests: tuple[tuple[str, int], ...] = ()
    extended_claim: str = ""
    extended_resources: frozenset[str] = frozenset()
    priority: int = 0
    gates: tuple[str, ...] = ()
    admission: str = ""
    untried: bool = False
    reclaiming: bool = False
    reclaiming_device: bool = False
    held: str = ""
    missed: str = ""
    too_slow: frozenset[str] = frozenset()
    unschedulable: bool = False
    succeeded: bool = False
    stale_since: str = ""
    deleting: bool = False
    leaves_at: str = ""
    scheduler: str = DEFAULT_SCHEDULER
    queue_is_bound: bool = False
    is_mirror: bool = False
    asked: Thousandths = field(default_factory=lambda: NOTHING, hash=False)
    needs: PodNeeds | None = None
    claim_names: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Asked for a dozen times between a pod's Filter and the end of its Bind.
        names = [entry.claim for entry in self.claims] + [self.extended_claim]
        object.__setattr__(self, "claim_names", tuple(dict.fromkeys(filter(None, names))))

    @property
    def is_bound(self) -> bool:
        return bool(self.node)

    @property
    def arrived_at(self) -> str:
        """Before this it used nothing; as `created`."""
        return self.bound_at or self.created

    @property
    def may_be_bound(self) -> bool:
        """Whether it may get a node yet: a pod never goes back to that."""
        return not (self.node or self.ended or self.deleting)

    @property
    def is_gated(self) -> bool:
        """Whether it waits until the plugin lets it go to kube-scheduler."""
        return QUOTA_GATE in self.gates and self.may_be_bound

    @property
    def may_use_devices(self) -> bool:
        """Whether it needs to be kept at all: most pods of a cluster ask for none."""
        return bool(self.claims or self.requests or self.extended_claim)

    @property
    def on_node(self) -> PodOnNode | None:
        """What it takes of its node; None where it takes nothing."""
        if not self.node or self.ended:
            return None
        return PodOnNode(self.uid, self.node, self.asked, self.deleting)

    @property
    def uncovered(self) -> Iterator[tuple[str, int]]:
        """The extended resources that no claim stands for."""
        return (r for r in self.requests if r[0] not in self.extended_resources)

    def without_extended_claim(self) -> PodView:
        """The pod as if no claim had been made for its extended resources."""
        return replace(self, extended_claim="", extended_resources=frozenset())

    def __str__(self) -> str:
        return f"Pod {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A Namespace: its labels choose its pods' queue, and queues select by them."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodGroupView:
    """A PodGroup and the queue of all its pods.

    Attributes:
        min_member: How many of its pods run together or not at all; None for all that name it.
        api_version: Of which kind of several it is; "" where nobody has to know.
        stale_grace: How long fewer may be left, `timedelta.max` for ever; None where it says none.
    """

    namespace: str
    name: str
    queue: QueueName
    min_member: int | None = 1
    uid: str = ""
    api_version: str = ""
    stale_grace: timedelta | None = None


def pod_view(obj: JsonObject | Pod, settings: AccountingSettings) -> PodView:
    """Parse a Pod, as the API server returns it or an extender's caller sends it."""
    pod = read_as(Pod, obj)
    metadata, spec, status = pod.metadata, pod.spec or NO_SPEC, pod.status or NO_STATUS
    annotations, labels = metadata.annotations or {}, metadata.labels or {}
    node = intern(spec.node_name or "")
    # Only a binding writes the annotation; on a pod that is not bound it is a user's invention.
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
        leaves_at=metadata.deletion_timestamp or "",
        scheduler=intern(spec.scheduler_name or DEFAULT_SCHEDULER),
        asked=NOTHING if ended else asked_of_node(written),
        needs=None if node or ended or deleting else _needs(spec, written),
    )


def _needs(spec: Spec, written: WrittenRequests) -> PodNeeds:
    labels = tuple(sorted((spec.node_selector or {}).items()))
    return needs_of(written, labels, spec.affinity, spec.tolerations or (), _asks_for_more(spec))


def _asks_for_more(spec: Spec) -> bool:
    """Whether it may be kept from a node by what is not looked at."""
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
    """As `digest_of` writes them."""
    if condition.status != "True":
        return frozenset()  # As of most pods.
    return frozenset(_DIGEST.findall(condition.message or ""))


def why_not_ours(pod: PodView, settings: AccountingSettings) -> str:
    """Why the kube-scheduler beside the plugin has no say about a pod; "" where it has."""
    if pod.scheduler in settings.scheduler_names:
        return ""
    ours = " or ".join(f'"{name}"' for name in sorted(settings.scheduler_names))
    return f'{pod}: spec.schedulerName: is "{pod.scheduler}", and this is the scheduler {ours}.'


def namespace_view(obj: JsonObject) -> NamespaceView:
    """Parse a Namespace."""
    metadata = named_metadata(obj)
    return NamespaceView(metadata.name, metadata.labels or {})


def pod_group_view(
    obj: JsonObject, settings: AccountingSettings, api_version: str = ""
) -> PodGroupView:
    """Parse a PodGroup of whatever group; its queue is `spec.queue`, else its label."""
    metadata, spec = named_metadata(obj), obj.get("spec") or {}
    queue = spec.get("queue") or (metadata.labels or {}).get(settings.queue_label) or ""
    if not isinstance(queue, str):  # Whose definition it is may let anything pass.
        raise UnreadableError("spec.queue", f"{queue!r:.80} is not a string.")
    return PodGroupView(
        metadata.namespace or "",
        metadata.name,
        QueueName(queue),
        _min_member(spec),
        uid=metadata.uid or "",
        api_version=api_version,
        stale_grace=_stale_grace(spec.get("stalenessGracePeriod")),
    )


def _stale_grace(given: object) -> timedelta | None:
    """KAI's; what is negative, or cannot be read, lets nobody go."""
    if given is None:
        return None
    found = parse_duration(given) if isinstance(given, str) else None
    return timedelta.max if found is None else found


def _min_member(spec: JsonObject) -> int | None:
    """KAI's and coscheduling's `minMember`; Kubernetes' own policy, which may be no gang at all."""
    policy = spec.get("schedulingPolicy")
    if policy is None:
        return int(spec.get("minMember") or 0) or None
    gang = policy.get("gang")
    return 1 if gang is None else int(gang.get("minCount") or 0) or None


def _group(spec: Spec, annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Kubernetes' own field, else KAI's annotation, else the coscheduling plugin's label."""
    named = (spec.scheduling_group or NO_GROUP).pod_group_name
    return named or annotations.get(POD_GROUP_ANNOTATION) or labels.get(POD_GROUP_LABEL, "")


def _non_preemptible(
    labels: Mapping[str, str], priority: int, settings: AccountingSettings
) -> bool:
    """What a label says, else the priority. A label without a meaning says nothing."""
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


def oldest(pods: Iterable[PodView]) -> list[PodView]:
    """The pods by age; ties by namespace and name."""
    return sorted(pods, key=lambda pod: (pod.created, pod.namespace, pod.name))
