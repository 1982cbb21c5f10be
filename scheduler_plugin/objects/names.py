"""Names of the scheduler plugin in the outside world, and the shapes that it shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NewType

from driver.api import DRIVER_NAME
from kube.kinds import QUEUES
from scheduler_plugin.objects.amounts import NOTHING, UNLIMITED, Ceiling, ResourceKey
from scheduler_plugin.objects.selectors import LabelSelector

GROUP, VERSION = QUEUES.group, QUEUES.version
QUEUE_KIND = "Queue"

FIELD_MANAGER = f"{GROUP}/scheduler-plugin"
"""Owner of the fields that the plugin writes; the name of its Events' controller, too."""

QUEUE_LABEL = f"{GROUP}/queue"
"""Label of claims, pods and namespaces; the key is a setting."""

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Label of every namespace, which the API server sets and nobody can forge."""

CHARGES_FINALIZER = f"{GROUP}/charges"
"""Finalizer of a Queue that is charged for anything: its charge would go with it."""

QUEUE_ANNOTATION = f"{GROUP}/queue"
"""Annotation of a bound pod, written with its binding: the queue that counts from then on."""

OWNER_POD_ANNOTATION = f"{GROUP}/owner-pod"
"""Annotation of a claim whose owner the binder wrote: UID of the pod whose queue became owner."""

OWNER_LEFT_AT_ANNOTATION = f"{GROUP}/owner-left-at"
"""Annotation of a claim that only foreign pods use: since when, in RFC 3339."""

EVICT_FOREIGN_ANNOTATION = f"{GROUP}/evict-foreign"
MAX_PODS_ANNOTATION = f"{GROUP}/max-pods-per-claim"
"""Annotation of a DeviceClass: how many pods may share one claim of it."""

ACCOUNTED_LABEL = f"{GROUP}/accounted"
"""Label of a DeviceClass: `true` or `false`."""

PREEMPTIBILITY_LABELS = (f"{GROUP}/preemptibility", "kai.scheduler/preemptibility")
"""Labels of a pod; the first that has a meaning counts."""

QUOTA_GATE = f"{GROUP}/quota"
"""Scheduling gate of a pod that waits until its verdict is to admit."""

ADMITTED_CONDITION = f"{GROUP}/Admitted"
"""Condition of a pod: False, and why, while it waits at its gate."""

STALE_CONDITION = f"{GROUP}/PodGroupStale"
"""Condition of a pod that runs: True while its PodGroup has fewer pods than it needs."""

RECLAIMING_CONDITION = f"{GROUP}/Reclaiming"
"""Condition of a pod that waits: True while room is held for it that others were evicted for."""

MISSED_CONDITION = f"{GROUP}/ReclaimMissed"
"""Condition of a pod that waits: True where room was held for it, and it was not bound."""

SELECTORS_CONDITION = f"{GROUP}/SelectorsTooSlow"
"""Condition of a pod that waits: True where CEL of its claims is not evaluated for it."""

DEVICE_RECLAIMED = "DeviceReclaimed"
"""Reason of that condition where it is a device that is held."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Annotation of a pod by which a kubelet shows a static one; it never changes."""

POD_GROUP_ANNOTATION = "pod-group-name"
"""Annotation of a pod that names its PodGroup, KAI's way; the coscheduling plugin has a label."""

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"

QueueName = NewType("QueueName", str)
PodUid = NewType("PodUid", str)
ClaimUid = NewType("ClaimUid", str)

NO_QUEUE = QueueName("")

DEFAULT_PRIORITY = 100
"""Of a Queue that says none, as KAI has it."""

NO_POD = PodUid("")


ADMIT = "Admit"
"""The action of Events of pods that wait at the gate, and of no others."""


class Reason(StrEnum):
    """Why a pod is refused, in the order in which the rules are asked."""

    NOT_KNOWN_YET = "NotKnownYet"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    GONE = "Gone"
    POD_GROUP_INCOMPLETE = "PodGroupIncomplete"
    CLAIM_INVALID = "ClaimInvalid"
    NO_QUEUE = "NoQueue"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_NOT_ALLOWED = "QueueNotAllowed"
    CLAIM_FULL = "ClaimFull"
    TOO_MANY_SHARERS = "TooManySharers"
    CLAIM_SHARING_DENIED = "ClaimSharingDenied"
    FOREIGN_NON_PREEMPTIBLE = "ForeignNonPreemptible"
    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
    BORROWING_BACKOFF = "BorrowingBackoff"
    DEVICE_HELD = "DeviceHeld"


class QueueCondition(StrEnum):
    """Conditions of a Queue: of its spec, its place in the tree, who names it, and its use."""

    ACCEPTED = "Accepted"
    PARENT_MISSING = "ParentMissing"
    PARENT_CYCLE = "ParentCycle"
    UNATTRIBUTED = "Unattributed"
    QUOTA_UNMET = "QuotaUnmet"
    QUOTA_EXCEEDS_DEVICES = "QuotaExceedsDevices"
    OVER_QUOTA = "OverQuota"
    NEAR_LIMIT = "NearLimit"
    UNGUARDED = "Unguarded"


class SharingPolicy(StrEnum):
    """Whether pods of other queues may use a queue's claims."""

    ALLOW = "Allow"
    DENY = "Deny"


class OnOwnerExit(StrEnum):
    """What becomes of foreign pods that outlive the owner's last pod."""

    KEEP = "Keep"
    EVICT = "Evict"


class OrphanPolicy(StrEnum):
    """Whom an allocated claim without an owner is charged to."""

    OLDEST_POD = "OldestPod"
    UNATTRIBUTED = "Unattributed"


class ReclaimPolicy(StrEnum):
    """Whether what queues are guaranteed is taken back from others for them."""

    QUOTA = "Quota"
    NEVER = "Never"


class OwnerLifetime(StrEnum):
    """How long an owner that the binder wrote stays."""

    ALLOCATION = "Allocation"
    CLAIM = "Claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSharing:
    """`spec.claimSharing` as written; None is inherited from the parent.

    Attributes:
        queues: Exceptions to Deny, each including its descendants.
        evict_foreign: Whether a claim's annotation may ask that foreign pods are evicted.
        label_at_create: Whether users may name this queue on a new claim.
    """

    policy: SharingPolicy | None = None
    queues: tuple[QueueName, ...] | None = None
    on_owner_exit: OnOwnerExit | None = None
    owner_exit_grace_period: timedelta | None = None
    evict_foreign: SharingPolicy | None = None
    label_at_create: SharingPolicy | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """What a queue is given of one resource.

    Attributes:
        quota: Guaranteed, and the ceiling of non-preemptible use; where a Queue says -1, its limit,
            if it has one.
        limit: The ceiling of all use.
        weight: The queue's part, beside its siblings', of what is left beyond all quotas; with 0
            it never goes beyond its own.
    """

    quota: Ceiling = NOTHING
    limit: Ceiling = UNLIMITED
    weight: int = 1

    @property
    def stays_in_quota(self) -> bool:
        """Whether the quota is what ends all use, and not the limit."""
        return not self.weight and self.quota.most is not None and self.quota != self.limit

    @property
    def most(self) -> Ceiling:
        """The ceiling of all use: the limit, or a quota beyond which the queue never goes."""
        return self.quota if self.stays_in_quota else self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A Queue object, already valid.

    Attributes:
        parent: "" for a root.
        is_kept: Whether it has the finalizer that keeps it while it is charged.
        is_deleting: Whether it goes as soon as nothing keeps it.
        namespaces: Labels of the namespaces that may use this queue; None for no namespace.
        priority: Among its siblings the larger goes first.
        preempt_min_runtime: How long its pods run before their own queue may take their devices;
            None is inherited.
        reclaim_min_runtime: The same for queues of other branches.
    """

    name: QueueName
    uid: str = ""
    generation: int = 0
    is_kept: bool = False
    is_deleting: bool = False
    parent: QueueName = NO_QUEUE
    namespaces: LabelSelector | None = None
    priority: int = DEFAULT_PRIORITY
    preempt_min_runtime: timedelta | None = None
    reclaim_min_runtime: timedelta | None = None
    sharing: ClaimSharing = field(default_factory=ClaimSharing)
    shares: Mapping[ResourceKey, Share] = field(default_factory=dict)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels may use it."""
        return self.namespaces is not None and self.namespaces.matches(labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingSettings:
    """What an administrator decides for the whole cluster.

    Attributes:
        default_queue: Queue of pods for which nothing else names one; "" for none.
        non_preemptible_priority: Pods of at least this priority are non-preemptible.
        scheduler_names: The profiles of the kube-scheduler that asks the plugin.
        accounted_drivers: The drivers whose devices, as policies see to it, no other allocates.
    """

    queue_label: str = QUEUE_LABEL
    default_queue: QueueName = NO_QUEUE
    non_preemptible_priority: int = 100
    scheduler_names: frozenset[str] = frozenset({"moorage"})
    orphan_policy: OrphanPolicy = OrphanPolicy.OLDEST_POD
    owner_lifetime: OwnerLifetime = OwnerLifetime.ALLOCATION
    max_consumers: int = 256
    accounted_drivers: tuple[str, ...] = (DRIVER_NAME,)
