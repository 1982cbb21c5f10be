"""The door into scheduler_plugin/waiting: what other components may use of it."""

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
from scheduler_plugin.waiting.group_gates import left_behind
from scheduler_plugin.waiting.keepers import gate_keeper
