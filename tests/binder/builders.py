"""Claims, pods and requests of the binder's tests: pod `a` of queue `a` binds claim `cam`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from binder.api import Binder
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import BindRequest, ClaimOwner
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from tests.fakes.claim_server import QUEUE, FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import a_claim_object, a_pod_object, a_result, pod_uid

NODE = "node-a"


def an_api(*pods: str, **claim: Any) -> FakeClaimServer:
    """An API server with claim `cam`, allocated and reserved for these pods (default: a)."""
    server = FakeClaimServer()
    names = pods or ("a",)
    for name in names:
        server.put(PODS, a_pod_object(name, queue=name, claims=["cam"]))
    fields = {"results": [a_result()], "pods": names, **claim}
    server.put(CLAIMS, a_claim_object("cam", **fields))
    return server


def a_binder(
    server: FakeClaimServer,
    fence: FakeFence | None = None,
    note_claim: Callable[[JsonObject], None] = lambda _: None,
    note_pod: Callable[[JsonObject], None] = lambda _: None,
) -> Binder:
    return Binder(
        server.client,
        fence or FakeFence(),
        queue_label=QUEUE,
        note_claim=note_claim,
        note_pod=note_pod,
    )


def an_owner(server: FakeClaimServer, queue: str, pod: str, claim: str = "cam") -> ClaimOwner:
    """The claim as it is now is to be this queue's, because of this pod."""
    metadata = server.claim(claim)["metadata"]
    label, owner_pod = server.owner(claim)
    return ClaimOwner(
        namespace="default",
        name=claim,
        uid=ClaimUid(metadata["uid"]),
        resource_version=metadata["resourceVersion"],
        queue=QueueName(queue),
        owner_pod=pod_uid(pod),
        label_found=QueueName(label),
        owner_pod_found=PodUid(owner_pod),
    )


def a_bind(server: FakeClaimServer, pod: str = "a", *owners: ClaimOwner) -> BindRequest:
    """The pod is to be bound; by default its queue becomes the owner of `cam`."""
    return BindRequest(
        namespace="default",
        name=pod,
        uid=pod_uid(pod),
        node=NODE,
        queue=QueueName(pod),
        claims=owners or (an_owner(server, pod, pod),),
    )
