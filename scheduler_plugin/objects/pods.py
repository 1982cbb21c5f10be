"""Views of pods, and of the namespaces and PodGroups that decide their queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from kube.shapes.claims import WORKLOAD_GROUP
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    QUOTA_GATE,
    AccountingSettings,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.node_requests import NOTHING, Thousandths
from scheduler_plugin.objects.pod_needs import PodNeeds, PodOnNode

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of `spec.resourceClaims`.

    Attributes:
        claim: Name of the ResourceClaim; "" while it is not made, or if none is needed.
        template: Name of the ResourceClaimTemplate; "" for a named claim.
        is_needless: Whether the pod's status says that no claim is made of the template.
    """

    name: str
    claim: str = ""
    template: str = ""
    is_needless: bool = False

    @property
    def as_written(self) -> PodClaim:
        """The entry without what its pod's status adds."""
        return PodClaim(self.name, "" if self.template else self.claim, self.template)

    @property
    def is_to_be_made(self) -> bool:
        """Whether a claim is still to be made of a template."""
        return bool(self.template) and not self.claim and not self.is_needless


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A Pod.

    Attributes:
        created: Its creation time as the API writes it; the text sorts in order of time.
        bound_at: When it was bound, in the same form; "" if it is not bound or the time is unknown.
        queue: The queue of its label or, once bound, of its binding; "" for none.
        queue_is_bound: Whether the queue is that of its binding, which was judged.
        is_mirror: Whether it is a mirror pod of a static pod, which was never judged.
        group: Name of its PodGroup in its namespace; "" for none.
        scheduling_group: The same, if `spec.schedulingGroup` names it: a PodGroup of Kubernetes'
            own API, for which claims may be reserved; "" otherwise.
        nominated: The node that kube-scheduler is about to bind it to, or makes room on for it; ""
            for none, and for a pod without `scheduling_group`.
        requests: Effective requests of extended resources, by name.
        extended_claim: The claim that kube-scheduler made for extended resources; "" for none.
            After a failed attempt the name remains, and the claim is deleted.
        extended_resources: The resources that this claim covers.
        gates: Its scheduling gates; while it has any, kube-scheduler ignores it.
        admission: Reason of the condition `ADMITTED_CONDITION`; "" for none.
        untried: Whether its gates were removed and kube-scheduler has not tried it since.
        succeeded: Whether its phase is Succeeded.
        stale_since: Since when its PodGroup has had too few pods, by its condition; "" if it has
            enough.
        reclaiming: Whether its condition says that something is held for it.
        reclaiming_device: Whether that includes devices.
        held: The message of that condition, see `read_held`.
        too_slow: Digests of its selectors that are too slow to evaluate, by its condition.
        missed: The message of `MISSED_CONDITION`, see `read_missed`.
        unschedulable: Whether kube-scheduler tried it and found no node. The attempt may be long
            ago, or may have failed by a refusal of the plugin.
        deleting: Whether it is terminating; until it is deleted it may still run.
        grace_ends_at: When its grace period ends then, in the form of `created`; "" if it is not.
        scheduler: Its scheduler name.
        asked: Its effective requests of node resources in thousandths; none once it has ended.
        needs: Its other needs of a node, without its claims; None if it cannot be bound any more.
            It is compared, since users may change the node selection of a gated pod.
        claim_names: The names of all its claims, in the order of its spec.
    """

    namespace: str
    name: str
    uid: PodUid
    created: str = ""
    bound_at: str = ""
    queue: QueueName = NO_QUEUE
    group: str = ""
    scheduling_group: str = ""
    nominated: str = ""
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
    grace_ends_at: str = ""
    scheduler: str = DEFAULT_SCHEDULER
    queue_is_bound: bool = False
    is_mirror: bool = False
    asked: Thousandths = field(default_factory=lambda: NOTHING, hash=False)
    needs: PodNeeds | None = None
    claim_names: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Computed once, since it is read a dozen times between Filter and Bind.
        names = [entry.claim for entry in self.claims] + [self.extended_claim]
        object.__setattr__(self, "claim_names", tuple(dict.fromkeys(filter(None, names))))

    @property
    def is_bound(self) -> bool:
        return bool(self.node)

    @property
    def arrived_at(self) -> str:
        """When it was bound, else created; before that it used nothing."""
        return self.bound_at or self.created

    @property
    def may_be_bound(self) -> bool:
        """Whether it may still be bound. A pod that may not never may again."""
        return not (self.node or self.ended or self.deleting)

    @property
    def is_gated(self) -> bool:
        """Whether it waits at Moorage's scheduling gate."""
        return QUOTA_GATE in self.gates and self.may_be_bound

    @property
    def may_use_devices(self) -> bool:
        """Whether it requests claims or extended resources; most pods of a cluster do not."""
        return bool(self.claims or self.requests or self.extended_claim)

    @property
    def on_node(self) -> PodOnNode | None:
        """What it takes of its node; None if it takes nothing."""
        if not self.node or self.ended:
            return None
        return PodOnNode(self.uid, self.node, self.asked, self.deleting)

    @property
    def uncovered(self) -> Iterator[tuple[str, int]]:
        """The requests of extended resources that no claim covers."""
        return (r for r in self.requests if r[0] not in self.extended_resources)

    def without_extended_claim(self) -> PodView:
        """The pod without the claim for its extended resources."""
        return replace(self, extended_claim="", extended_resources=frozenset())

    def __str__(self) -> str:
        return f"Pod {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A Namespace, whose labels decide the default queue of its pods and which queues admit it."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodGroupView:
    """A PodGroup and the queue of its pods.

    Attributes:
        min_member: How many of its pods must run together; None for all that name it.
        api_version: The API version of its kind; "" if it is not needed.
        stale_grace: How long it may have fewer pods, `timedelta.max` for no limit; None for the
            default.
        goes_whole: Whether its pods are disrupted together only, however many would be left.
        claims: The claims that it lists: kube-scheduler reserves them for it, for those of its pods
            that name them in the same way.
    """

    namespace: str
    name: str
    queue: QueueName
    min_member: int | None = 1
    uid: str = ""
    api_version: str = ""
    stale_grace: timedelta | None = None
    goes_whole: bool = False
    claims: frozenset[PodClaim] = frozenset()

    def lists(self, claim: str, pod: PodView) -> bool:
        """Whether a pod of the group uses this claim through the group."""
        entries = (entry for entry in pod.claims if entry.claim == claim)
        return any(entry.as_written in self.claims for entry in entries)

    @property
    def is_kubernetes_own(self) -> bool:
        """Whether it is of Kubernetes' own API, so that claims may be reserved for it."""
        return self.api_version.startswith(f"{WORKLOAD_GROUP}/")


def why_not_ours(pod: PodView, settings: AccountingSettings) -> str:
    """Why the plugin's kube-scheduler does not schedule a pod, as a sentence; "" if it does."""
    if pod.scheduler in settings.scheduler_names:
        return ""
    ours = " or ".join(f'"{name}"' for name in sorted(settings.scheduler_names))
    return f'{pod}: spec.schedulerName: is "{pod.scheduler}", and this is the scheduler {ours}.'


def oldest(pods: Iterable[PodView]) -> list[PodView]:
    """The pods in the order of their age; ties are broken by namespace and name."""
    return sorted(pods, key=lambda pod: (pod.created, pod.namespace, pod.name))
