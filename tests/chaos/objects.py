"""Objects of the API as the checker reads them: plain JSON, and what it asks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace, or an empty word, and name."""

DRIVER = "moorage.dev"
VENDORS = ("gpu.example.com", "nic.example.com")
"""Other drivers, whose devices Queues of the trials count."""
PREFIX = "akri.sh/"
QUEUE = "moorage.dev/queue"
OWNER_POD = "moorage.dev/owner-pod"
CHARGES = "moorage.dev/charges"
GATE = "moorage.dev/quota"
ADMITTED = "moorage.dev/Admitted"
PREEMPTIBILITY = "moorage.dev/preemptibility"
NON_PREEMPTIBLE = "non-preemptible"
NON_PREEMPTIBLE_FROM = 100
"""Pods of this priority and above are not preemptible, unless a label says so."""
EXTENDED_CLASS = "deviceclass.resource.kubernetes.io/"
OTHERS_CLASSES = {"lens": "echo"}
"""DeviceClasses that nobody of Moorage made, each with the Configuration that it selects from."""
POD_GROUP = "pod-group-name"
WORKLOADS = "podgroups.scheduling.k8s.io"
"""Kubernetes' own PodGroups in a snapshot, where `podgroups` are KAI's."""
TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Snapshot:
    """What the API server holds at one moment: objects by the plural of their kind."""

    objects: Mapping[str, Mapping[Key, Object]]

    def all(self, kind: str) -> Iterator[Object]:
        return iter(self.objects.get(kind, {}).values())

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        return self.objects.get(kind, {}).get((namespace, name))

    def pods_by_uid(self) -> dict[str, Object]:
        return {uid(pod): pod for pod in self.all("pods")}


def key(found: Object) -> Key:
    return (found["metadata"].get("namespace", ""), found["metadata"]["name"])


def shown(found: Object) -> str:
    """The namespace and name of an object, as people write them."""
    return "/".join(part for part in key(found) if part)


def uid(found: Object) -> str:
    return str(found["metadata"]["uid"])


def label(found: Object, name: str) -> str:
    return str((found["metadata"].get("labels") or {}).get(name, ""))


def annotation(found: Object, name: str) -> str:
    return str((found["metadata"].get("annotations") or {}).get(name, ""))


def is_going(found: Object) -> bool:
    return "deletionTimestamp" in found["metadata"]


def node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def is_over(pod: Object) -> bool:
    """Whether a pod has come to its end."""
    return pod.get("status", {}).get("phase") in TERMINAL


def is_placed(pod: Object) -> bool:
    """Whether a pod has a node, and has not come to its end."""
    return bool(node_of(pod)) and not is_over(pod)


def condition(found: Object, name: str) -> Object:
    """One condition of an object, empty if there is none."""
    conditions = found.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == name), {})


def is_non_preemptible(pod: Object) -> bool:
    told = label(pod, PREEMPTIBILITY)
    if told:
        return told == NON_PREEMPTIBLE
    return priority_of(pod) >= NON_PREEMPTIBLE_FROM


def priority_of(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def queue_of(pod: Object, snapshot: Snapshot) -> str:
    """The queue that a pod belongs to: of its binding, its label, its PodGroup or its namespace."""
    namespace = snapshot.get("namespaces", pod["metadata"]["namespace"]) or {"metadata": {}}
    group = group_of(pod, snapshot)
    of_group = str(group["spec"].get("queue") or "") if group else ""
    return annotation(pod, QUEUE) or label(pod, QUEUE) or of_group or label(namespace, QUEUE)


def members_of(group: Object, snapshot: Snapshot) -> list[Object]:
    """The pods that name a group."""
    return [pod for pod in snapshot.all("pods") if group_of(pod, snapshot) == group]


def group_of(pod: Object, snapshot: Snapshot) -> Object | None:
    """The PodGroup of a pod, where it names one that exists."""
    return snapshot.get("podgroups", annotation(pod, POD_GROUP), pod["metadata"]["namespace"])


def allocation(claim: Object) -> Object | None:
    found: Object | None = claim.get("status", {}).get("allocation")
    return found


def results(claim: Object) -> list[Object]:
    """The devices that a claim has and queues are charged for."""
    devices = (allocation(claim) or {}).get("devices", {})
    return [r for r in devices.get("results") or () if r["driver"] in (DRIVER, *VENDORS)]


def of_ours(claim: Object) -> list[Object]:
    """Those of Moorage's own driver."""
    return [result for result in results(claim) if result["driver"] == DRIVER]


def reserved_for(claim: Object, snapshot: Snapshot) -> list[str]:
    """The UIDs of the pods that a claim is reserved for, alone or through their PodGroup."""
    entries = claim.get("status", {}).get("reservedFor") or ()
    alone = [entry["uid"] for entry in entries if entry["resource"] == "pods"]
    groups = standing_groups(claim, snapshot)
    users = [uid(pod) for pod in snapshot.all("pods") if _uses(pod, claim, groups)]
    return [*alone, *(each for each in users if each not in alone)]


def standing_groups(claim: Object, snapshot: Snapshot) -> set[str]:
    """The names of the PodGroups that a claim is reserved for, and that are the ones meant."""
    entries = claim.get("status", {}).get("reservedFor") or ()
    found = (entry for entry in entries if entry["resource"] == "podgroups")
    namespace = claim["metadata"]["namespace"]
    return {
        entry["name"]
        for entry in found
        if (group := snapshot.get(WORKLOADS, entry["name"], namespace))
        and uid(group) == entry["uid"]
    }


def workload_of(pod: Object) -> str:
    """The name of its PodGroup of Kubernetes' own API."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _uses(pod: Object, claim: Object, groups: set[str]) -> bool:
    sources = pod["spec"].get("resourceClaims") or ()
    names = {entry.get("resourceClaimName") for entry in sources}
    is_there = pod["metadata"]["namespace"] == claim["metadata"]["namespace"] and is_placed(pod)
    return is_there and workload_of(pod) in groups and claim["metadata"]["name"] in names


def claims_of(pod: Object, snapshot: Snapshot) -> list[Object]:
    """The ResourceClaims of a pod that exist, that of its extended resources among them."""
    status = pod.get("status", {})
    made = {s["name"]: s.get("resourceClaimName") for s in status.get("resourceClaimStatuses", ())}
    names = [
        entry.get("resourceClaimName") or made.get(entry["name"])
        for entry in pod["spec"].get("resourceClaims") or ()
    ]
    names.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    namespace = pod["metadata"]["namespace"]
    found = (snapshot.get("resourceclaims", name, namespace) for name in names if name)
    return [claim for claim in found if claim]


def time_of(text: str) -> datetime:
    """A time of the API, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
