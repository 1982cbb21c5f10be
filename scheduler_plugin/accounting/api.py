"""The door into scheduler_plugin/accounting: what other components may use of it."""

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.figures.queue_status import QueueObject, queue_object
from scheduler_plugin.accounting.figures.queue_statuses import QueueStatuses
from scheduler_plugin.accounting.figures.quota_excess import uses_by_configuration
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.queues.effective_sharing import why_not_admitted
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    OtherChanged,
    PodChanged,
    WorldChange,
)
