"""The public interface of the scheduler plugin; other components import only this module."""

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.figures.queue_status import QueueObject, queue_object
from scheduler_plugin.accounting.figures.queue_statuses import QueueStatuses
from scheduler_plugin.accounting.figures.quota_excess import uses_by_configuration
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.queues.queues import QueueTree, why_not_admitted
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    OtherChanged,
    PodChanged,
    WorldChange,
)
from scheduler_plugin.cleanup.charged_queues import (
    ChargedQueues,
    FinalizerWrite,
    is_charged,
    without_finalizer,
)
from scheduler_plugin.cleanup.claim_cleanup import ClaimCleanup, Step
from scheduler_plugin.cleanup.owner_exits import EvictForeign, OwnerExitTime, PodToEvict, RequeueAt
from scheduler_plugin.cleanup.shared_claims import ForeignPods, SharedClaim, SharedClaims
from scheduler_plugin.cleanup.stale_claims import (
    Attribution,
    ClaimCleared,
    EndedOwner,
    LostQueue,
    lost_queue,
)
from scheduler_plugin.cleanup.stale_gangs import (
    EventTargets,
    EvictGang,
    GangStep,
    GroupKey,
    MarkStale,
    MarkWhole,
    gang_step,
)
from scheduler_plugin.cleanup.unattributed_pods import UnattributedPods
from scheduler_plugin.judging.equivalence_classes import equivalence_class, placement_class
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.bindings import (
    BinderProtocol,
    BindFailed,
    BindRequest,
    Bound,
    ClaimOwner,
    ClaimsChanged,
    Fence,
    FencedError,
    Outcome,
    check_fence,
)
from scheduler_plugin.objects.claim_objects import claim_template_view, claim_view
from scheduler_plugin.objects.claims import ClaimTemplateView, ClaimView, ClassName, DeviceId
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.devices import (
    ClassView,
    InstanceView,
    class_view,
    instance_view,
)
from scheduler_plugin.objects.devices.driver_guards import unguarded
from scheduler_plugin.objects.held_texts import held_text, missed_text, read_missed
from scheduler_plugin.objects.names import (
    ACCOUNTED_LABEL,
    ADMIT,
    ADMITTED_CONDITION,
    CHARGES_FINALIZER,
    DEVICE_RECLAIMED,
    FIELD_MANAGER,
    GROUP,
    MISSED_CONDITION,
    NO_QUEUE,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
    QUEUE_ANNOTATION,
    QUEUE_KIND,
    QUEUE_LABEL,
    QUOTA_GATE,
    RECLAIMING_CONDITION,
    SELECTORS_CONDITION,
    STALE_CONDITION,
    VERSION,
    AccountingSettings,
    ClaimUid,
    PodUid,
    Queue,
    QueueName,
    Reason,
    SharingPolicy,
)
from scheduler_plugin.objects.pod_objects import namespace_view, pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodClaim, PodView
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.objects.selectors import LabelSelector, selector_of
from scheduler_plugin.objects.steps import STRIDE
from scheduler_plugin.reclaiming.cycles import Cycle, EvictionLimit
from scheduler_plugin.reclaiming.due_targets import is_due
from scheduler_plugin.reclaiming.expected_charges import NoCandidates, gang_of
from scheduler_plugin.reclaiming.held_placements import Outlook, hold_of, outlook
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.placement.answers import (
    Answers,
    Expressions,
    Unanswered,
    evaluable,
)
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest, demands_of, may_want_device
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_placements import NodePlacements
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer
from scheduler_plugin.reclaiming.placements import Placements
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED, ExcludedPods
from scheduler_plugin.waiting.admissions import (
    Admission,
    GateCondition,
    GateRemoval,
    Retry,
    WaitingPod,
    fits_condition,
    has_stale_condition,
)
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.deferred.untried_pods import restore_assumption, untried_pods
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.keepers import gate_keeper
