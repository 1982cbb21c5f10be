"""A fake kube-apiserver that has a large cluster to show: lists in pages, watches that stay silent.

    python -m bench.fake_apiserver --claims N --pods N --queues N

It prints its port. Objects are of the size that the real one returns, managedFields included, and
are encoded before it says that it is there: its own part of a start is as small as can be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from scheduler_plugin.objects.names import (
    ACCOUNTED_LABEL,
    GROUP,
    OWNER_POD_ANNOTATION,
    QUEUE_LABEL,
    VERSION,
)

VERSION_NOW = "1000000"
HOLDER = "fake-scheduler"
DEVICE_CLASS = "camera"
DEPTH = 4
NODES = 500


class FakeLargeCluster:
    """Answers with what was encoded beforehand."""

    def __init__(self, claims: int, pods: int, queues: int) -> None:
        dra = "/apis/resource.k8s.io/v1"
        self._lists = {
            "/api/v1/pods": encoded(a_pod(n, pods // claims, queues) for n in range(pods)),
            f"{dra}/resourceclaims": encoded(
                a_claim(n, pods // claims, queues) for n in range(claims)
            ),
            f"/apis/{GROUP}/{VERSION}/queues": encoded(a_queue(n) for n in range(queues)),
            f"{dra}/deviceclasses": encoded([a_class()]),
            f"{dra}/resourceslices": [],
            "/api/v1/namespaces": encoded([named("default")]),
            "/api/v1/nodes": encoded(a_node(n) for n in range(NODES)),
            "/apis/akri.sh/v0/configurations": [],
            "/apis/akri.sh/v0/instances": [],
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in self._lists and request.method == "GET":
            if "watch" in request.query:
                return await silence(request)
            return self._page(self._lists[request.path], request.query)
        if "/leases/" in request.path:
            return web.json_response(a_lease())
        if request.method == "GET":
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        return web.json_response({"metadata": {"resourceVersion": VERSION_NOW}})

    def _page(self, items: list[bytes], query: Any) -> web.Response:
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
        end = start + limit
        metadata = {"resourceVersion": VERSION_NOW}
        if end < len(items):
            metadata["continue"] = str(end)
        head = b'{"metadata":' + json.dumps(metadata).encode() + b',"items":['
        body = head + b",".join(items[start:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")


async def silence(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


def encoded(objects: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(obj, separators=(",", ":")).encode() for obj in objects]


def named(name: str, **metadata: Any) -> dict[str, Any]:
    """Metadata with the fields that nobody here reads, and every server sends."""
    fields: dict[str, Any] = {
        f"f:field-{n}": {".": {}, "f:name": {}, "f:value": {}} for n in range(12)
    }
    managed = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": fields}}]
    return {
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-0000-0000-{name}",
            "resourceVersion": "1000",
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "managedFields": managed,
            **metadata,
        }
    }


def a_pod(number: int, sharers: int, queues: int) -> dict[str, Any]:
    labels = {"app": f"app-{number % 50}", QUEUE_LABEL: f"queue-{number % queues}"}
    body = named(f"pod-{number:05d}", namespace="default", labels=labels)
    environment = [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(8)]
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "camera"}]}
    container = {"name": "main", "image": "image:1", "env": environment, "resources": resources}
    claim = {"name": "camera", "resourceClaimName": f"claim-{number // sharers:05d}"}
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    time = "2026-11-21T12:00:00Z"
    conditions = [{"type": k, "status": "True", "lastTransitionTime": time} for k in kinds]
    return body | {
        "spec": {
            "nodeName": f"node-{number % NODES}",
            "containers": [container],
            "resourceClaims": [claim],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1"},
    }


def a_claim(number: int, sharers: int, queues: int) -> dict[str, Any]:
    pods = [f"pod-{number * sharers + n:05d}" for n in range(sharers)]
    owner = {OWNER_POD_ANNOTATION: f"00000000-0000-0000-0000-{pods[0]}"}
    labels = {QUEUE_LABEL: f"queue-{number * sharers % queues}"}
    body = named(f"claim-{number:05d}", namespace="default", labels=labels, annotations=owner)
    result = {"request": "camera", "driver": "devices.example", "pool": "a", "device": "b"}
    reserved = [
        {"resource": "pods", "name": p, "uid": f"00000000-0000-0000-0000-{p}"} for p in pods
    ]
    request = {"name": "camera", "exactly": {"deviceClassName": DEVICE_CLASS}}
    return body | {
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved},
    }


def a_queue(number: int) -> dict[str, Any]:
    """Chains of a few queues."""
    share = {"deviceClass": DEVICE_CLASS, "quota": 1_000_000, "limit": 1_000_000}
    parent = {"parent": f"queue-{number - 1}"} if number % DEPTH else {}
    return named(f"queue-{number}", generation=1) | {
        "spec": {"namespaceSelector": {}, "resources": [share], **parent}
    }


def a_node(number: int) -> dict[str, Any]:
    """A node with as many labels as a cloud's has, and images, which nobody here reads."""
    name = f"node-{number}"
    labels = {f"example.com/label-{n}": f"value-{n}" for n in range(20)}
    labels |= {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    beat = {"lastHeartbeatTime": "2026-11-21T12:00:00Z"}
    images = [{"names": [f"registry.example/image:{n}"], "sizeBytes": 1_000_000} for n in range(30)]
    return named(name, labels=labels) | {
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": {"cpu": "32", "memory": "131072000Ki", "pods": "110"},
            "conditions": [{"type": k, "status": str(k == "Ready"), **beat} for k in kinds],
            "images": images,
        },
    }


def a_class() -> dict[str, Any]:
    return named(DEVICE_CLASS, labels={ACCOUNTED_LABEL: "true"}) | {"spec": {}}


def a_lease() -> dict[str, Any]:
    """Held since long ago, and renewed at this moment."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": f"{HOLDER}_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T12:00:00.000000Z",
        "renewTime": now,
        "leaseTransitions": 0,
    }
    return named("moorage-scheduler", namespace="moorage-system") | {"spec": spec}


async def serve(server: FakeLargeCluster, say: Callable[[int], None]) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    say(runner.addresses[0][1])
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("claims", "pods", "queues"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    server = FakeLargeCluster(arguments.claims, arguments.pods, arguments.queues)
    asyncio.run(serve(server, lambda port: print(port, flush=True)))


if __name__ == "__main__":
    main()
