"""The door into scheduler_plugin/reclaiming: what other components may use of it."""

from scheduler_plugin.objects.devices.selections import Expressions, evaluable
from scheduler_plugin.reclaiming.cycles import Cycle, EvictionLimit
from scheduler_plugin.reclaiming.due_targets import is_due
from scheduler_plugin.reclaiming.expected_charges import NoCandidates, gang_of
from scheduler_plugin.reclaiming.held_placements import Outlook, hold_of, outlook
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.placement.answers import Answers, Unanswered
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest, demands_of, may_want_device
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_placements import NodePlacements
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED, ExcludedPods
