"""An API server with the Secret of both processes, a Lease, and pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube.calls.api import ConflictError, NotFoundError, Preconditions
from kube.kinds import LEASES, SECRETS
from kube.objects import JsonObject
from kube.resources import ObjectPath

SECRET = SECRETS.at("moorage-dashboard-tls", "moorage-system")
LEASE = LEASES.at("moorage-scheduler", "moorage-system")


@dataclass
class FakeCluster:
    """Answers from its fields.

    Attributes:
        data: Of the Secret; None where there is none.
        holder: Of the Lease.
        pods: The IP address of each pod.
        asked: What was read, in order.
        overtaken: Whether another process writes before each write.
    """

    data: dict[str, str] | None = field(default_factory=dict)
    holder: str = "leader_2f1c"
    pods: dict[str, str] = field(default_factory=lambda: {"leader": "127.0.0.1"})
    asked: list[str] = field(default_factory=list)
    version: int = 1
    overtaken: bool = False

    async def get(self, path: ObjectPath, **_: Any) -> JsonObject:
        self.asked.append(f"{path.resource.plural} {path.namespace}/{path.name}")
        if path == SECRET:
            if self.data is None:
                raise NotFoundError("no Secret")
            metadata = {"name": path.name, "uid": "u", "resourceVersion": str(self.version)}
            return {"metadata": metadata, "data": dict(self.data)}
        if path == LEASE:
            return {"spec": {"holderIdentity": self.holder}}
        if path.name not in self.pods:
            raise NotFoundError(f"{path.name} is not there")
        metadata = {"name": path.name, "uid": "u"}
        return {"metadata": metadata, "status": {"podIP": self.pods[path.name]}}

    async def merge_patch(
        self, path: ObjectPath, patch: JsonObject, *, preconditions: Preconditions, **_: Any
    ) -> JsonObject:
        assert path == SECRET
        assert self.data is not None
        self.version += self.overtaken
        if preconditions.resource_version != str(self.version):
            raise ConflictError("the object has been modified")
        self.data |= patch["data"]
        self.version += 1
        return {"data": self.data}
