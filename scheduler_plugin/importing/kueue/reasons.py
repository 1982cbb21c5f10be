"""Why fields of Kueue's have no counterpart, and which of their values mean what Moorage does."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.importing.findings import Finding, Reasons
from scheduler_plugin.importing.kueue.kueue_models import ClusterQueue, Preemption

CHOSEN = "Moorage does not choose flavors: kube-scheduler chooses the device."
CHECKED = "Moorage admits pods by quotas alone."
STOPPED = "A Queue cannot be stopped. Set its limits to 0, or remove spec.namespaceSelector."
ON_NODES = "An entry counts devices on all nodes: where pods may run is said by the pods."
OF_MANAGER = "It is a setting of Kueue's manager, and about no queue."

CLUSTER_QUEUES = Reasons(
    {
        "spec.queueingStrategy": "A pod that does not fit never blocks the pods behind it.",
        "spec.stopPolicy": STOPPED,
        "spec.admissionChecks": CHECKED,
        "spec.admissionChecksStrategy": CHECKED,
        "spec.flavorFungibility": CHOSEN,
        "spec.concurrentAdmissionPolicy": CHOSEN,
        "spec.admissionScope": "Past use of a namespace does not count.",
        "spec.preemption.borrowWithinCohort": "No pod is evicted for a queue above its quota.",
    },
    {
        "spec.queueingStrategy": ("BestEffortFIFO",),
        "spec.stopPolicy": ("None",),
        # Defaults of the API server; the first is `Borrow` in v1beta1.
        "spec.flavorFungibility.whenCanBorrow": ("MayStopSearch", "Borrow"),
        "spec.flavorFungibility.whenCanPreempt": ("TryNextFlavor",),
    },
)
COHORTS = Reasons({}, {})
LOCAL_QUEUES = Reasons(
    {
        "spec.stopPolicy": STOPPED,
        "spec.fairSharing": "Namespaces of one Queue have no weights: give each a Queue below it.",
    },
    {"spec.stopPolicy": ("None",)},
)
FLAVORS = Reasons(
    {
        f"spec.{field}": ON_NODES
        for field in ("nodeLabels", "nodeTaints", "tolerations", "topologyName")
    },
    {},
)
CONFIGURATIONS = Reasons(
    {
        "resources": "Only deviceClassMappings say what Queues count.",
        "resources.deviceClassMappings": "It is unknown what the mapping counts by this.",
        "manageJobsWithoutQueueName": "The webhook of Moorage adds the queue of the namespace.",
        "waitForPodsReady": "Pods are admitted together by PodGroups.",
        "integrations": "Moorage admits pods, and not jobs.",
        "multiKueue": "A Queue is about one cluster.",
        "admissionFairSharing": "Past use does not count.",
    },
    {},
    OF_MANAGER,
)
PREEMPTION_STRATEGIES = Finding(
    "Configuration",
    ("fairSharing",),
    "What exceeds quotas is shared by weights as devices become free, and never by evictions.",
)

_POLICIES = {
    "reclaimWithinCohort": (
        "Any",
        "A queue below its quota gets it back, whatever the priority: of pods that are preemptible"
        " and of queues above theirs.",
    ),
    "withinClusterQueue": (
        "LowerPriority",
        "Within a queue preemptible pods of lower priority are evicted for the quota.",
    ),
}
"""What Moorage does, in Kueue's word and in a sentence."""

NEVER = "Never"
"""The default of all policies."""


def preemption_findings(queue: ClusterQueue, *, has_devices: bool) -> Iterator[Finding]:
    """A finding for each policy that Moorage does not have.

    An absent policy has its default, which means nothing for a queue without devices.
    """
    given = (queue.spec and queue.spec.preemption) or Preemption()
    policies = {
        "reclaimWithinCohort": given.reclaim_within_cohort,
        "withinClusterQueue": given.within_cluster_queue,
    }
    for name, policy in policies.items():
        known, sentence = _POLICIES[name]
        matters = has_devices and (queue.cohort or name != "reclaimWithinCohort")
        if policy != known and (policy is not None or matters):
            said = f"{policy or NEVER}{'' if policy else ', the default'}: {sentence}"
            yield Finding(queue.about, (f"spec.preemption.{name}",), said)
    borrowing = given.borrow_within_cohort
    if borrowing and borrowing.policy not in (None, NEVER):
        path = "spec.preemption.borrowWithinCohort"
        yield Finding(queue.about, (f"{path}.policy",), CLUSTER_QUEUES.by_path[path])
