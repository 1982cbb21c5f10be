"""The only door into the binder."""

from binder.apiserver import Binder
from binder.cleanup.apiserver_claim_cleanup import ClaimController
from binder.gates.apiserver_gate_writes import GateWrites
from binder.gates.apiserver_gates import GateWriter
from binder.queues.apiserver_finalizers import FinalizerWriter, FinalizingBinder
from binder.queues.apiserver_queues import QueueStatusWriter
from binder.queues.apiserver_warnings import SharingRecorder, WarningRecorder
from binder.reclaiming.apiserver_reclaims import ReclaimConfig, Reclaimer
from binder.reclaiming.prometheus_reclaims import REGISTRY as RECLAIM_FIGURES
