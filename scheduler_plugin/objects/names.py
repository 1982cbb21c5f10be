"""The plugin's names in the Kubernetes API, and types that all rooms share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NewType

from driver.api import DRIVER_NAME
from kube.kinds import QUEUES
from scheduler_plugin.objects.amounts import NOTHING, UNLIMITED, Ceiling, ResourceKey
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.objects.selectors import LabelSelector

GROUP, VERSION = QUEUES.group, QUEUES.version
QUEUE_KIND = "Queue"

FIELD_MANAGER = f"{GROUP}/scheduler-plugin"
"""The field manager of the plugin, and the reporting controller of its Events."""

QUEUE_LABEL = f"{GROUP}/queue"
"""The default key of the queue label of claims, pods and namespaces."""

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Label of every namespace, which the API server sets and users cannot change."""

CHARGES_FINALIZER = f"{GROUP}/charges"
"""Finalizer of a charged Queue, whose charges would be lost if it were deleted."""

QUEUE_ANNOTATION = f"{GROUP}/queue"
"""Annotation of a bound pod, written with its binding: the queue that counts from then on."""

OWNER_POD_ANNOTATION = f"{GROUP}/owner-pod"
"""Annotation of a claim whose owner the binder wrote: UID of the pod that decided the owner."""

OWNER_LEFT_AT_ANNOTATION = f"{GROUP}/owner-left-at"
"""Annotation of a claim that only foreign pods use: the exit time of the owner, in RFC 3339."""

CHARGED_ANNOTATION = f"{GROUP}/charged"
"""Annotation of a claim: what its devices cost by their slices, see `charge_notes`."""

EVICT_FOREIGN_ANNOTATION = f"{GROUP}/evict-foreign"
MAX_PODS_ANNOTATION = f"{GROUP}/max-pods-per-claim"
"""Annotation of a DeviceClass: how many pods may share one of its claims."""

ACCOUNTED_LABEL = f"{GROUP}/accounted"
"""Label of a DeviceClass: `true` or `false`."""

PREEMPTIBILITY_LABELS = (f"{GROUP}/preemptibility", "kai.scheduler/preemptibility")
"""Labels of a pod; the first with a valid value counts."""

QUOTA_GATE = f"{GROUP}/quota"
"""Scheduling gate of a pod that waits for admission."""

ADMITTED_CONDITION = f"{GROUP}/Admitted"
"""Condition of a pod: False, with the cause, while it waits at its gate."""

STALE_CONDITION = f"{GROUP}/PodGroupStale"
"""Condition of a running pod: True while its PodGroup has fewer pods than it needs."""

RECLAIMING_CONDITION = f"{GROUP}/Reclaiming"
"""Condition of a pending pod: True while something is held for it that pods were evicted for."""

MISSED_CONDITION = f"{GROUP}/ReclaimMissed"
"""Condition of a pending pod: True if something was held for it, and it was not bound."""

SELECTORS_CONDITION = f"{GROUP}/SelectorsTooSlow"
"""Condition of a pending pod: True if CEL expressions of its claims are too slow to evaluate."""

DEVICE_RECLAIMED = "DeviceReclaimed"
"""Reason of the condition `RECLAIMING_CONDITION` if devices are held."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Annotation of a mirror pod, by which a kubelet reports a static pod; it never changes."""

POD_GROUP_ANNOTATION = "pod-group-name"
"""Annotation of a pod with its PodGroup, as KAI has it; the coscheduling plugin uses a label."""

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"

QueueName = NewType("QueueName", str)
PodUid = NewType("PodUid", str)
ClaimUid = NewType("ClaimUid", str)

NO_QUEUE = QueueName("")

DEFAULT_PRIORITY = 100
"""The default priority of Queues, as KAI has it."""

NO_POD = PodUid("")


ADMIT = "Admit"
"""The action of Events about pods that wait at the gate, and of no others."""


class Reason(StrEnum):
    """Why a pod is refused, in the order of the rules."""

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
    POD_GROUP_QUEUE_MISMATCH = "PodGroupQueueMismatch"
    CLAIM_SHARING_DENIED = "ClaimSharingDenied"
    FOREIGN_NON_PREEMPTIBLE = "ForeignNonPreemptible"
    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
    BORROWING_BACKOFF = "BorrowingBackoff"
    DEVICE_HELD = "DeviceHeld"


class QueueCondition(StrEnum):
    """The condition types of a Queue."""

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
    """What happens to foreign pods after owner exit."""

    KEEP = "Keep"
    EVICT = "Evict"


class OrphanPolicy(StrEnum):
    """Which queue an allocated claim without an owner is charged to."""

    OLDEST_POD = "OldestPod"
    UNATTRIBUTED = "Unattributed"


class ReclaimPolicy(StrEnum):
    """Whether pods are evicted for queues below their quota."""

    QUOTA = "Quota"
    NEVER = "Never"


class OwnerLifetime(StrEnum):
    """How long an owner that the binder wrote stays."""

    ALLOCATION = "Allocation"
    CLAIM = "Claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSharing:
    """`spec.claimSharing`; None is inherited from the parent.

    Attributes:
        queues: Exceptions to Deny, each with its descendants.
        evict_foreign: Whether a claim's annotation may request the eviction of foreign pods.
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
    """A queue's share of one resource.

    Attributes:
        quota: The guaranteed amount, and the ceiling of non-preemptible use. A quota of -1 in the
            Queue is its limit here.
        limit: The ceiling of all use.
        weight: The queue's weight among its siblings for what exceeds all quotas; with 0 it never
            exceeds its quota.
        definition: What it counts; None for the devices of a class.
    """

    quota: Ceiling = NOTHING
    limit: Ceiling = UNLIMITED
    weight: int = 1
    definition: Definition | None = None

    @property
    def stays_in_quota(self) -> bool:
        """Whether the quota, and not the limit, is the ceiling of all use."""
        return not self.weight and self.quota.most is not None and self.quota != self.limit

    @property
    def most(self) -> Ceiling:
        """The ceiling of all use: the limit, or the quota for a weight of 0."""
        return self.quota if self.stays_in_quota else self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A valid Queue object.

    Attributes:
        parent: The parent queue; "" for a root.
        has_finalizer: Whether it has the finalizer of charged Queues.
        is_deleting: Whether it is terminating.
        namespaces: Selects the namespaces that may use this queue; None for no namespace.
        priority: The priority among its siblings; larger ones are served first.
        preempt_min_runtime: How long its pods run before pods of their own queue may preempt them;
            None is inherited.
        reclaim_min_runtime: How long its pods run before pods of other queues may; None is
            inherited.
        misread: The entries that this version does not understand, each with its path and why; they
            are not among the shares.
    """

    name: QueueName
    uid: str = ""
    generation: int = 0
    has_finalizer: bool = False
    is_deleting: bool = False
    parent: QueueName = NO_QUEUE
    namespaces: LabelSelector | None = None
    priority: int = DEFAULT_PRIORITY
    preempt_min_runtime: timedelta | None = None
    reclaim_min_runtime: timedelta | None = None
    sharing: ClaimSharing = field(default_factory=ClaimSharing)
    shares: Mapping[ResourceKey, Share] = field(default_factory=dict)
    misread: tuple[str, ...] = ()

    def class_of(self, key: ResourceKey) -> ResourceKey:
        """The class whose devices an entry counts; "" for an entry of a driver."""
        definition = self.shares[key].definition
        return key if definition is None else ResourceKey(definition.device_class)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels may use it."""
        return self.namespaces is not None and self.namespaces.matches(labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingSettings:
    """Accounting settings of the whole cluster.

    Attributes:
        default_queue: The queue of pods without a queue of another source; "" for none.
        non_preemptible_priority: Pods of at least this priority are non-preemptible.
        scheduler_names: The profiles of the kube-scheduler that calls the plugin.
        accounted_drivers: The drivers whose devices other schedulers cannot allocate, by policy.
    """

    queue_label: str = QUEUE_LABEL
    default_queue: QueueName = NO_QUEUE
    non_preemptible_priority: int = 100
    scheduler_names: frozenset[str] = frozenset({"moorage"})
    orphan_policy: OrphanPolicy = OrphanPolicy.OLDEST_POD
    owner_lifetime: OwnerLifetime = OwnerLifetime.ALLOCATION
    max_consumers: int = 256
    accounted_drivers: tuple[str, ...] = (DRIVER_NAME,)
