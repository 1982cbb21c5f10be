"""All rules in their order: the first that refuses gives the reason of the verdict."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.judging.rules.claims import (
    ClaimFull,
    ClaimInvalid,
    ClaimSharingDenied,
    ForeignNonPreemptible,
    TooManySharers,
)
from scheduler_plugin.judging.rules.held_devices import DeviceHeld
from scheduler_plugin.judging.rules.known_objects import ClaimNotFound, Gone, NotKnownYet
from scheduler_plugin.judging.rules.limits import (
    BorrowingBackoff,
    NonPreemptibleOverQuota,
    OverLimit,
)
from scheduler_plugin.judging.rules.pod_groups import PodGroupIncomplete, PodGroupQueueMismatch
from scheduler_plugin.judging.rules.queues import NoQueue, QueueNotAllowed, QueueNotFound
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import Reason

NAMED: tuple[Rule, ...] = (NotKnownYet(), ClaimNotFound(), Gone())
"""The rules on the objects that a pod names; all of them are evaluated."""

POD_GROUP_INCOMPLETE = PodGroupIncomplete()
MAY_BORROW = BorrowingBackoff()
NON_PREEMPTIBLE_FITS = NonPreemptibleOverQuota()

RULES: tuple[Rule, ...] = (
    *NAMED,
    ClaimInvalid(),
    NoQueue(),
    QueueNotFound(),
    QueueNotAllowed(),
    ClaimFull(),
    TooManySharers(),
    PodGroupQueueMismatch(),
    ClaimSharingDenied(),
    ForeignNonPreemptible(),
    OverLimit(),
    NON_PREEMPTIBLE_FITS,
    MAY_BORROW,
    DeviceHeld(),
)
"""The rules for one pod: rule by rule, and within a rule claim by claim."""

BY_REASON: Mapping[Reason, Rule] = {rule.reason: rule for rule in (*RULES, POD_GROUP_INCOMPLETE)}
