"""Pods, and what says which queue they belong to: namespaces and PodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

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


def why_not_ours(pod: PodView, settings: AccountingSettings) -> str:
    """Why the kube-scheduler beside the plugin has no say about a pod; "" where it has."""
    if pod.scheduler in settings.scheduler_names:
        return ""
    ours = " or ".join(f'"{name}"' for name in sorted(settings.scheduler_names))
    return f'{pod}: spec.schedulerName: is "{pod.scheduler}", and this is the scheduler {ours}.'


def oldest(pods: Iterable[PodView]) -> list[PodView]:
    """The pods by age; ties by namespace and name."""
    return sorted(pods, key=lambda pod: (pod.created, pod.namespace, pod.name))
