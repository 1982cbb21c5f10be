"""Pods, and what says which queue they belong to: namespaces and PodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from sys import intern

from scheduler_plugin.objects.fields import (
    JsonObject,
    an_object,
    number,
    objects,
    own_text,
    readable,
    text,
    texts,
)
from scheduler_plugin.objects.names import (
    ADMITTED_CONDITION,
    MIRROR_ANNOTATION,
    NO_QUEUE,
    POD_GROUP_ANNOTATION,
    PREEMPTIBILITY_LABELS,
    QUEUE_ANNOTATION,
    QUOTA_GATE,
    AccountingSettings,
    PodUid,
    Preemptibility,
    QueueName,
)
from scheduler_plugin.objects.requests import effective_requests

DEFAULT_SCHEDULER = "default-scheduler"

_TERMINAL = frozenset({"Succeeded", "Failed"})

_NON_PREEMPTIBLE: Mapping[str, bool] = {
    Preemptibility.PREEMPTIBLE: False,
    Preemptibility.NON_PREEMPTIBLE: True,
}


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
        deleting: Whether it is on its way out; until it is gone it may still run.
        scheduler: The scheduler that it names; one that names none has Kubernetes' own.
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
    deleting: bool = False
    scheduler: str = DEFAULT_SCHEDULER
    queue_is_bound: bool = False
    is_mirror: bool = False

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
    def claim_names(self) -> tuple[str, ...]:
        """All claims that exist for it, in the order of its spec."""
        names = [entry.claim for entry in self.claims] + [self.extended_claim]
        return tuple(dict.fromkeys(name for name in names if name))

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
    """A PodGroup and the queue of all its pods."""

    namespace: str
    name: str
    queue: QueueName


@readable
def pod_view(obj: JsonObject, settings: AccountingSettings) -> PodView:
    """Parse a Pod, as the API server returns it or an extender's caller sends it."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    annotations = texts(metadata.get("annotations"), "metadata.annotations")
    labels = texts(metadata.get("labels"), "metadata.labels")
    spec = an_object(obj.get("spec"), "spec")
    status = an_object(obj.get("status"), "status")
    node = text(spec.get("nodeName"), "spec.nodeName")
    # Only a binding writes the annotation; on a pod that is not bound it is a user's invention.
    bound_queue = annotations.get(QUEUE_ANNOTATION) if node else None
    covered = "status.extendedResourceClaimStatus"
    extended = an_object(status.get("extendedResourceClaimStatus"), covered)
    mappings = objects(extended.get("requestMappings"), f"{covered}.requestMappings")
    priority = number(spec.get("priority"), "spec.priority", default=0)
    gates = tuple(_gates(spec))
    conditions = dict(_conditions(status))
    scheduler = text(spec.get("schedulerName"), "spec.schedulerName")
    return PodView(
        namespace=text(metadata.get("namespace"), "metadata.namespace"),
        name=own_text(metadata.get("name"), "metadata.name"),
        uid=PodUid(own_text(metadata.get("uid"), "metadata.uid")),
        created=text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        bound_at=conditions.get("PodScheduled", _NEVER).since if node else "",
        queue=_queue_name(bound_queue or labels.get(settings.queue_label)),
        queue_is_bound=bool(bound_queue),
        is_mirror=MIRROR_ANNOTATION in annotations,
        group=text(annotations.get(POD_GROUP_ANNOTATION), "metadata.annotations"),
        non_preemptible=_non_preemptible(labels, priority, settings),
        node=node,
        ended=text(status.get("phase"), "status.phase") in _TERMINAL,
        claims=tuple(_claims(spec, status)),
        requests=effective_requests(spec),
        extended_claim=text(extended.get("resourceClaimName"), f"{covered}.resourceClaimName"),
        extended_resources=frozenset(text(m.get("resourceName"), where) for where, m in mappings),
        priority=priority,
        gates=gates,
        admission=conditions.get(ADMITTED_CONDITION, _NEVER).reason,
        untried=not gates and conditions.get("PodScheduled", _NEVER).reason == "SchedulingGated",
        deleting=metadata.get("deletionTimestamp") is not None,
        scheduler=intern(scheduler) if scheduler else DEFAULT_SCHEDULER,
    )


def why_not_ours(pod: PodView, settings: AccountingSettings) -> str:
    """Why the kube-scheduler beside the plugin has no say about a pod; "" where it has."""
    if pod.scheduler in settings.scheduler_names:
        return ""
    ours = " or ".join(f'"{name}"' for name in sorted(settings.scheduler_names))
    return f'{pod}: spec.schedulerName: is "{pod.scheduler}", and this is the scheduler {ours}.'


@readable
def namespace_view(obj: JsonObject) -> NamespaceView:
    """Parse a Namespace."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    labels = texts(metadata.get("labels"), "metadata.labels")
    return NamespaceView(own_text(metadata.get("name"), "metadata.name"), dict(labels))


@readable
def pod_group_view(obj: JsonObject, settings: AccountingSettings) -> PodGroupView:
    """Parse a PodGroup of whatever group; its queue is `spec.queue`, else its label."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    labels = texts(metadata.get("labels"), "metadata.labels")
    queue = an_object(obj.get("spec"), "spec").get("queue") or labels.get(settings.queue_label)
    return PodGroupView(
        text(metadata.get("namespace"), "metadata.namespace"),
        own_text(metadata.get("name"), "metadata.name"),
        QueueName(text(queue, "spec.queue")),
    )


def _queue_name(value: str | None) -> QueueName:
    return QueueName(text(value, "metadata.labels"))


def _gates(spec: JsonObject) -> Iterator[str]:
    for where, gate in objects(spec.get("schedulingGates"), "spec.schedulingGates"):
        yield text(gate.get("name"), f"{where}.name")


@dataclass(frozen=True, slots=True)
class _Condition:
    reason: str
    since: str


_NEVER = _Condition(reason="", since="")


def _conditions(status: JsonObject) -> Iterator[tuple[str, _Condition]]:
    """The conditions that mean something here, by type."""
    for where, condition in objects(status.get("conditions"), "status.conditions"):
        if condition.get("type") in (ADMITTED_CONDITION, "PodScheduled"):
            reason = text(condition.get("reason"), f"{where}.reason")
            since = text(condition.get("lastTransitionTime"), f"{where}.lastTransitionTime")
            yield condition["type"], _Condition(reason, since)


def _non_preemptible(
    labels: Mapping[str, str], priority: int, settings: AccountingSettings
) -> bool:
    """What a label says, else the priority. A label without a meaning says nothing."""
    for key in PREEMPTIBILITY_LABELS:
        if labels.get(key) in _NON_PREEMPTIBLE:
            return _NON_PREEMPTIBLE[labels[key]]
    return priority >= settings.non_preemptible_priority


def _claims(spec: JsonObject, status: JsonObject) -> Iterator[PodClaim]:
    path = "status.resourceClaimStatuses"
    made = {
        text(entry.get("name"), f"{where}.name"): text(
            entry.get("resourceClaimName"), f"{where}.resourceClaimName"
        )
        for where, entry in objects(status.get("resourceClaimStatuses"), path)
    }
    for where, entry in objects(spec.get("resourceClaims"), "spec.resourceClaims"):
        name = text(entry.get("name"), f"{where}.name")
        named = text(entry.get("resourceClaimName"), f"{where}.resourceClaimName")
        template = text(
            entry.get("resourceClaimTemplateName"), f"{where}.resourceClaimTemplateName"
        )
        claim = named or made.get(name, "")
        yield PodClaim(name, claim, template, is_needless=name in made and not claim)


def oldest(pods: Iterable[PodView]) -> list[PodView]:
    """The pods by age; ties by namespace and name."""
    return sorted(pods, key=lambda pod: (pod.created, pod.namespace, pod.name))
