"""The least that an extender can do which says on each claim whose it is.

    python -m bench.do_nothing_extender --kubeconfig FILE [--port 10261] [--refuse PREFIX]
        [--beside nothing|watches|books]

Filter passes the names of all nodes through, but for pods of queues whose names begin with PREFIX:
those it refuses. Bind writes a label on the pod's claims, once each,
and posts the binding. No stores, no verdicts, no checks: whatever accounts does more than this.
It stands on the same server, parser, loop and API client as the plugin.

Beside that it may do a part of what the plugin does, so that the rest can be told from it:

    watches     pods and claims are watched and decoded as the plugin does it, and dropped
    books       all that the plugin follows is followed, and its ledger is kept, for nobody
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from kube.calls.api import ApiClient, connect
from kube.kinds import CLAIMS, PODS
from kube.resources import Resource
from kube.shapes.claims import Claim as WatchedClaim
from kube.shapes.pods import Pod as WatchedPod
from kube.stores.api import Store, WatchSettings
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings

NOTHING, WATCHES, BOOKS = "nothing", "watches", "books"


class Entry(msgspec.Struct):
    """An entry of a pod's `spec.resourceClaims`."""

    resourceClaimName: str = ""  # noqa: N815


class Metadata(msgspec.Struct):
    """Metadata of a pod."""

    uid: str
    labels: dict[str, str] = {}


class Spec(msgspec.Struct):
    """The claims of a pod."""

    resourceClaims: list[Entry] = []  # noqa: N815


class Pod(msgspec.Struct):
    """A pod."""

    metadata: Metadata
    spec: Spec


class FilterArguments(msgspec.Struct):
    """What Filter is asked."""

    Pod: Pod
    NodeNames: msgspec.Raw


class BindArguments(msgspec.Struct):
    """What Bind is asked."""

    PodName: str
    PodNamespace: str
    PodUID: str
    Node: str


read_filter = msgspec.json.Decoder(FilterArguments)
read_bind = msgspec.json.Decoder(BindArguments)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Extender:
    """Remembers from Filter what Bind is to label."""

    def __init__(self, client: ApiClient, refused: str) -> None:
        self._client = client
        self._refused = refused
        self._pods: dict[str, Pod] = {}
        self._labelled: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = scope["type"] == "http"
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        answer = await self._answer(scope["path"], body)
        length = str(len(answer)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, path: str, body: bytes) -> bytes:
        if path == "/filter":
            return self._filter(body)
        if path == "/bind":
            return await self._bind(read_bind.decode(body))
        return b"{}"

    def _filter(self, body: bytes) -> bytes:
        arguments = read_filter.decode(body)
        pod = arguments.Pod
        if self._refused and pod.metadata.labels[QUEUE_LABEL].startswith(self._refused):
            names = msgspec.json.decode(arguments.NodeNames, type=list[str])
            failed = dict.fromkeys(names, "OverLimit: no")
            return msgspec.json.encode({"NodeNames": [], "FailedAndUnresolvableNodes": failed})
        self._pods[pod.metadata.uid] = pod
        return b'{"NodeNames":' + bytes(arguments.NodeNames) + b"}"

    async def _bind(self, arguments: BindArguments) -> bytes:
        pod = self._pods.pop(arguments.PodUID)
        for entry in pod.spec.resourceClaims:
            await self._label(arguments.PodNamespace, entry.resourceClaimName, pod)
        target = {"apiVersion": "v1", "kind": "Node", "name": arguments.Node}
        metadata = {
            "namespace": arguments.PodNamespace,
            "name": arguments.PodName,
            "uid": arguments.PodUID,
        }
        binding = {"metadata": metadata, "target": target}
        await self._client.create(PODS, binding, subresource="binding")
        return b'{"Error":""}'

    async def _label(self, namespace: str, claim: str, pod: Pod) -> None:
        if (namespace, claim) in self._labelled:
            return
        self._labelled.add((namespace, claim))
        labels = {QUEUE_LABEL: pod.metadata.labels[QUEUE_LABEL]}
        await self._client.merge_patch(
            CLAIMS.at(claim, namespace), {"metadata": {"labels": labels}}
        )


async def keep_watches(client: ApiClient) -> None:
    """Decode what comes of pods and claims, and keep nothing."""
    async with asyncio.TaskGroup() as tasks:
        for resource, shape in ((PODS, WatchedPod), (CLAIMS, WatchedClaim)):
            tasks.create_task(_dropping(client, resource, shape).run())


def _dropping(client: ApiClient, resource: Resource, shape: type[Any]) -> Store[None]:
    settings = WatchSettings(shape=shape)
    return Store(client, resource.select(), lambda _: None, settings=settings)


async def keep_books(client: ApiClient) -> None:
    """Keep the plugin's ledger, of which nobody asks anything."""
    await ClusterWorld(client, AccountingSettings()).run()


async def keep_nothing(_client: ApiClient) -> None:
    """The least."""


BESIDE: Mapping[str, Callable[[ApiClient], Coroutine[None, None, None]]] = {
    NOTHING: keep_nothing,
    WATCHES: keep_watches,
    BOOKS: keep_books,
}


async def serve(kubeconfig: Path, port: int, refused: str, beside: str) -> None:
    async with connect(kubeconfig, user_agent="do-nothing") as client, asyncio.TaskGroup() as tasks:
        kept = tasks.create_task(BESIDE[beside](client))
        config = uvicorn.Config(
            Extender(client, refused),
            host="127.0.0.1",
            port=port,
            http="httptools",
            lifespan="off",
            access_log=False,
            log_level="warning",
        )
        await uvicorn.Server(config).serve()
        kept.cancel()


def main() -> None:
    """Serve until a signal ends it."""
    import uvloop

    parser = argparse.ArgumentParser(description="The least that an extender can do.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, default=10261)
    parser.add_argument("--refuse", default="", metavar="PREFIX")
    parser.add_argument("--beside", choices=BESIDE, default=NOTHING)
    arguments = parser.parse_args()
    given = (arguments.kubeconfig, arguments.port, arguments.refuse, arguments.beside)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(*given))


if __name__ == "__main__":
    main()
