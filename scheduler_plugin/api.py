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
from scheduler_plugin.judging.equivalence_classes import equivalence_class, placement_class
from scheduler_plugin.keeping.charged_queues import ChargedQueues, Keep, is_charged, unkept
from scheduler_plugin.keeping.leaving import EvictForeign, OwnerLeftAt, PodToEvict, RequeueAt
from scheduler_plugin.keeping.leftovers import (
    Attribution,
    ClaimCleared,
    EndedOwner,
    LostQueue,
    lost_queue,
)
from scheduler_plugin.keeping.shared_claims import Guests, SharedClaim, SharedClaims
from scheduler_plugin.keeping.stale_gangs import (
    EvictGang,
    GangStep,
    GroupKey,
    MarkStale,
    MarkWhole,
    Sides,
    gang_step,
)
from scheduler_plugin.keeping.unattributed_pods import UnattributedPods
from scheduler_plugin.keeping.upkeep import ClaimCleanup, Step
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.bindings import (
    BindFailed,
    BindRequest,
    Bound,
    CarriesOut,
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
from scheduler_plugin.reclaiming.cycles import Cycle, PutOff
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.due_takes import is_due
from scheduler_plugin.reclaiming.held_places import Outlook, hold_of, outlook
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.places.answers import Answers, Expressions, Unanswered, evaluable
from scheduler_plugin.reclaiming.places.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.places.offers import DeviceRequest, Offer
from scheduler_plugin.reclaiming.places.seekers import Ask, may_want_device, seekers_of
from scheduler_plugin.reclaiming.places.stock import Stock
from scheduler_plugin.reclaiming.places.supply import NodeSupply
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Away
from scheduler_plugin.reclaiming.wants import Nobody, together_with
from scheduler_plugin.waiting.away.untried_pods import believe, untried_pods
from scheduler_plugin.waiting.decisions import (
    GateCondition,
    GateRemoval,
    LetGo,
    Retry,
    WaitingPod,
    fits_condition,
    has_stale_condition,
)
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.keepers import gate_keeper
from scheduler_plugin.waiting.lines.refused_pods import RefusedPods
