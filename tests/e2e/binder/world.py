"""Claims and pods as the stories need them, and what the others of the cluster do to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from kube.calls.api import ApiClient
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import BindRequest, ClaimOwner
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName

NAMESPACE = "binder"
NODE = "node-a"
QUEUE = "moorage.dev/queue"
OWNER_POD = "moorage.dev/owner-pod"


def new_name(kind: str) -> str:
    return f"{kind}-{uuid4().hex[:8]}"


def a_claim(name: str, **metadata: Any) -> dict[str, Any]:
    request = {"name": "req", "exactly": {"deviceClassName": "onvif"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {"devices": {"requests": [request]}},
    }


def a_pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            "automountServiceAccountToken": False,
        },
    }


def a_binding(pod: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": NAMESPACE, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    }


def uid_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["uid"])


def owner_of(claim: JsonObject) -> tuple[str, str]:
    """Label and owner-pod of a claim; "" for what is not there."""
    metadata = claim["metadata"]
    label = metadata.get("labels", {}).get(QUEUE, "")
    return label, metadata.get("annotations", {}).get(OWNER_POD, "")


@dataclass(frozen=True, slots=True)
class Stage:
    """One claim with its pods, and the rest of the cluster: kube-scheduler and controllers."""

    admin: ApiClient
    claim_name: str

    async def claim(self) -> JsonObject:
        return await self.admin.get(CLAIMS.at(self.claim_name, NAMESPACE))

    async def pod(self, pod: JsonObject) -> JsonObject:
        return await self.admin.get(PODS.path_of(pod))

    async def new_pod(self) -> JsonObject:
        return await self.admin.create(PODS, a_pod(new_name("pod")))

    async def allocate(self, *pods: JsonObject) -> JsonObject:
        """Allocate the claim, reserved for these pods; deallocate it for none."""
        body = await self.claim()
        status = {"allocation": _ALLOCATION, "reservedFor": _consumers(pods)} if pods else {}
        path = CLAIMS.at(self.claim_name, NAMESPACE, "status")
        return await self.admin.replace(path, {**body, "status": status})

    async def request(
        self, pod: JsonObject, queue: str = "a", *, owner: tuple[str, str] | None = None
    ) -> BindRequest:
        """The pod is to be bound, and the claim to be its queue's, or `owner`'s."""
        claim = await self.claim()
        label, owner_pod = owner_of(claim)
        owner_queue, deciding = owner or (queue, uid_of(pod))
        asked = ClaimOwner(
            namespace=NAMESPACE,
            name=self.claim_name,
            uid=ClaimUid(uid_of(claim)),
            resource_version=claim["metadata"]["resourceVersion"],
            queue=QueueName(owner_queue),
            owner_pod=PodUid(deciding),
            label_found=QueueName(label),
            owner_pod_found=PodUid(owner_pod),
        )
        return BindRequest(
            namespace=NAMESPACE,
            name=pod["metadata"]["name"],
            uid=PodUid(uid_of(pod)),
            node=NODE,
            queue=QueueName(queue),
            claims=(asked,),
        )


async def new_stage(admin: ApiClient, **metadata: Any) -> Stage:
    name = new_name("claim")
    await admin.create(CLAIMS, a_claim(name, **metadata))
    return Stage(admin, name)


_ALLOCATION = {
    "devices": {
        "results": [{"request": "req", "driver": "moorage.dev", "pool": "p", "device": "d"}]
    }
}


def _consumers(pods: Sequence[JsonObject]) -> list[dict[str, str]]:
    return [
        {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid_of(pod)} for pod in pods
    ]
