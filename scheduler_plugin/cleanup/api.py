"""The door into scheduler_plugin/cleanup: what other components may use of it."""

from scheduler_plugin.cleanup.charge_notes import ChargeNote
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
    GroupKey,
    MarkStale,
    MarkWhole,
    gang_step,
)
from scheduler_plugin.cleanup.unattributed_pods import UnattributedPods
