"""What a story sees: its objects on the API server, and what they say of queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from local_cluster.api import ApiError, Cluster
from local_cluster.apiserver import ApiServer
from tests.e2e.sharing import audit, objects
from tests.e2e.sharing.audit import Entry
from tests.e2e.sharing.objects import Object

CLAIM = "shared"

KINDS = {
    "namespace": "/api/v1/namespaces",
    "account": "/api/v1/namespaces/{}/serviceaccounts",
    "pod": "/api/v1/namespaces/{}/pods",
    "event": "/api/v1/namespaces/{}/events",
    "budget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "volumeclaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "volume": "/api/v1/persistentvolumes",
    "template": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "claim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "slice": "/apis/resource.k8s.io/v1/resourceslices",
    "class": "/apis/resource.k8s.io/v1/deviceclasses",
    "queue": "/apis/moorage.dev/v1alpha1/queues",
    "configuration": "/apis/akri.sh/v0/namespaces/{}/configurations",
    "instance": "/apis/akri.sh/v0/namespaces/{}/instances",
    "priority": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "policy": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "webhook": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "policybinding": "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
}
CLUSTER_SCOPED = (
    "volume",
    "webhook",
    "namespace",
    "slice",
    "class",
    "queue",
    "priority",
    "policy",
    "policybinding",
)


@dataclass
class View:
    """A look at one story's namespace, and at what it made outside of it.

    Attributes:
        name: Of the DeviceClass, of the driver, and in the names of queues; nobody else's.
        made: What is deleted at the end: kind and name.
    """

    cluster: Cluster
    namespace: str
    name: str
    api: ApiServer
    made: list[tuple[str, str]] = field(default_factory=list)

    def path(self, kind: str, name: str = "") -> str:
        return KINDS[kind].format(self.namespace) + (f"/{name}" if name else "")

    def find(self, kind: str, name: str) -> Object | None:
        try:
            found: Object = self.api.get(self.path(kind, name))
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return found

    def get(self, kind: str, name: str) -> Object:
        found = self.find(kind, name)
        assert found is not None, f"{kind} {name} is gone"
        return found

    def all(self, kind: str) -> list[Object]:
        items: list[Object] = self.api.get(self.path(kind))["items"]
        return items

    def key(self, pod: str) -> str:
        return f"{self.namespace}/{pod}"

    def uid(self, kind: str, name: str) -> str:
        uid: str = self.get(kind, name)["metadata"]["uid"]
        return uid

    def node_of(self, pod: str) -> str:
        return str(self.get("pod", pod)["spec"].get("nodeName", ""))

    def bound(self) -> set[str]:
        """Names of the pods that have a node."""
        return {p["metadata"]["name"] for p in self.all("pod") if p["spec"].get("nodeName")}

    def is_running(self, pod: str) -> bool:
        return bool(self.get("pod", pod)["status"]["phase"] == "Running")

    def owner(self, claim: str = CLAIM) -> str:
        """The queue label of a claim, "" for none."""
        metadata = self.get("claim", claim)["metadata"]
        return str(metadata.get("labels", {}).get(objects.QUEUE, ""))

    def owner_pod(self, claim: str = CLAIM) -> str:
        """UID of the pod whose queue became owner, "" for none."""
        annotations = self.get("claim", claim)["metadata"].get("annotations", {})
        return str(annotations.get(objects.OWNER_POD, ""))

    def left_at(self, claim: str = CLAIM) -> str:
        """Since when the owner has no pod on a claim that others use, "" where that is not so."""
        annotations = self.get("claim", claim)["metadata"].get("annotations", {})
        return str(annotations.get(objects.OWNER_LEFT_AT, ""))

    def told(self, name: str, reason: str) -> str:
        """What the latest Event of this reason says about an object, "" without one."""
        found = ""
        for event in self.all("event"):
            if (event["involvedObject"]["name"], event["reason"]) == (name, reason):
                found = str(event["message"])
        return found

    def consumers(self, claim: str = CLAIM) -> list[str]:
        status = self.get("claim", claim).get("status", {})
        return [entry["name"] for entry in status.get("reservedFor", ())]

    def is_allocated(self, claim: str = CLAIM) -> bool:
        return "allocation" in self.get("claim", claim).get("status", {})

    def status(self, queue: str) -> Object:
        status: Object = self.get("queue", queue).get("status", {})
        return status

    def figure(self, queue: str, what: str = "usage", key: str = "") -> int:
        """One of the Queue's figures, of this story's class or another."""
        return int(self.status(queue).get(what, {}).get(key or self.name, 0))

    def shared_out(self, queue: str) -> int:
        return int(self.status(queue).get("claims", {}).get("sharedOut", 0))

    def allocated_node(self, claim: str = CLAIM) -> str:
        """The node whose device the claim got; pools are named after nodes here."""
        (result,) = self.get("claim", claim)["status"]["allocation"]["devices"]["results"]
        return str(result["pool"])

    def refused(self, pod: str, words: str) -> str:
        """What the pod's condition says if these words are in it, else ""."""
        for condition in self.get("pod", pod).get("status", {}).get("conditions", ()):
            if condition["type"] == "PodScheduled" and words in condition.get("message", ""):
                return str(condition["message"])
        return ""

    def audited(self) -> Iterator[Entry]:
        """What the API server was asked in this namespace, the earliest first."""
        for entry in audit.entries(self.cluster.audit_log, self.namespace):
            if entry.get("objectRef", {}).get("namespace") == self.namespace:
                yield entry

    def bindings_of(self, pod: str) -> int:
        """How many bindings of a pod the API server accepted."""
        return sum(
            (entry["objectRef"].get("subresource"), entry["objectRef"].get("name"))
            == ("binding", pod)
            and entry["responseStatus"]["code"] == 201
            for entry in self.audited()
        )

    def evictions(self) -> list[str]:
        """Names of the pods whose evictions the API server accepted, the earliest first."""
        return [
            entry["objectRef"]["name"]
            for entry in self.audited()
            if entry["objectRef"].get("subresource") == "eviction"
            and entry["responseStatus"]["code"] == 201
            and "dryRun" not in entry["requestURI"]
        ]

    def owner_writes(self, claim: str = CLAIM) -> int:
        """How often the binder wrote a claim."""
        return len(self.written_owners(claim))

    def written_owners(self, claim: str = CLAIM) -> list[Object]:
        """What a claim was each time that the binder had written it."""
        return [
            entry["responseObject"]
            for entry in self.audited()
            if (entry["verb"], entry["user"]["username"]) == ("patch", objects.BINDER)
            and entry["objectRef"].get("name") == claim
            and entry["responseStatus"]["code"] == 200
        ]

    def describe(self) -> Iterator[str]:
        """Everything that says why something did not happen, line by line."""
        for kind in KINDS:
            made = {name for made_kind, name in self.made if made_kind == kind}
            for item in self.all(kind):
                if kind not in CLUSTER_SCOPED or item["metadata"]["name"] in made:
                    yield f"{kind}: {_shown(item)}"


def _shown(item: Object) -> str:
    metadata = item["metadata"]
    shown = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    told = {key: item[key] for key in ("reason", "message", "status") if key in item}
    return f"{metadata['name']} {json.dumps({**shown, **told})}"
