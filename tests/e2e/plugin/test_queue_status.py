"""The status of Queues on the real API server, written from what the stores say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from binder.queues.apiserver_queues import QueueStatusWriter, StatusSettings
from binder.queues.apiserver_warnings import WarningRecorder
from kube.calls.api import (
    ApiClient,
    NotFoundError,
    ServerFaultError,
    UnavailableError,
    WriteOptions,
    connect,
)
from kube.events.api import EventRecorder
from kube.kinds import CLAIMS, EVENTS, PODS, QUEUES
from kube.objects import JsonObject
from kube.resources import ObjectPath
from local_cluster.api import Cluster
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import AccountingSettings
from tests.deploy.documents import CRDS, documents_in
from tests.e2e.kube_world import new_namespace
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_pod_object,
    a_queue_object,
    a_request,
    a_result,
)

LABEL = "moorage.dev/queue"
SETTINGS = StatusSettings()
SOMEBODY = WriteOptions(field_manager="somebody")

T = TypeVar("T")


class UnsteadyClient(ApiClient):
    """Fails as often as the test says, and holds writes back until the test lets them go."""

    def __init__(self, client: ApiClient) -> None:
        super().__init__(client.transport)
        self.failures = 0
        self.applied: list[JsonObject] = []
        self.open = asyncio.Event()
        self.open.set()

    async def apply(self, path: ObjectPath, body: JsonObject, **options: Any) -> JsonObject:
        self.applied.append(body)
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise UnavailableError("the test says so")
        return await super().apply(path, body, **options)


async def until(what: Callable[[], Awaitable[T]], right: Callable[[T], object]) -> T:
    """Ask again and again until the answer is right, for half a minute at most."""
    async with asyncio.timeout(30):
        while True:
            if right(found := await what()):
                return found
            await asyncio.sleep(0.05)


async def until_true(condition: Callable[[], object]) -> None:
    async def ask() -> object:
        return condition()

    await until(ask, bool)


@dataclass
class Stage:
    """Queues and claims of one test, and the plugin's parts that follow them."""

    cluster: Cluster
    client: UnsteadyClient
    place: str
    names: dict[str, str] = field(default_factory=dict)
    fence: FakeFence = field(default_factory=FakeFence)

    def name(self, queue: str) -> str:
        """A name that no other test has: Queues have no namespace."""
        return self.names.setdefault(queue, f"{queue}-{uuid4().hex[:6]}")

    async def queue(self, queue: str, **spec: Any) -> None:
        obj = a_queue_object(self.name(queue), **spec)
        await self.client.create(QUEUES, {**obj, "metadata": {"name": self.name(queue)}})

    async def pod(self, name: str, queue: str) -> JsonObject:
        """A pod that is bound as the binder does it."""
        obj = a_pod_object(name, claims=["cam"])
        spec = {
            "containers": [
                {"name": "m", "image": "none", "resources": {"claims": [{"name": "cam"}]}}
            ],
            "resourceClaims": [{"name": "cam", "resourceClaimName": "cam"}],
            "nodeName": "node-a",
        }
        metadata = {
            "name": name,
            "namespace": self.place,
            "annotations": {LABEL: self.name(queue)},
        }
        return await self.client.create(PODS, {**obj, "metadata": metadata, "spec": spec})

    async def claim(
        self, queue: str, owner: JsonObject | None = None, pods: tuple[JsonObject, ...] = ()
    ) -> JsonObject:
        """An allocated claim that is reserved for pods."""
        metadata: dict[str, Any] = {
            "name": "cam",
            "namespace": self.place,
            "labels": {LABEL: self.name(queue)},
        }
        if owner is not None:
            metadata["annotations"] = {"moorage.dev/owner-pod": owner["metadata"]["uid"]}
        spec = a_claim_object(requests=[a_request()])["spec"]
        made = await self.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
        consumers = [
            {"resource": "pods", "name": p["metadata"]["name"], "uid": p["metadata"]["uid"]}
            for p in pods
        ]
        status = {"allocation": {"devices": {"results": [a_result()]}}, "reservedFor": consumers}
        path = CLAIMS.at("cam", self.place, "status")
        return await self.client.replace(path, {**made, "status": status})

    async def label(self, queue: str | None) -> None:
        labels = {LABEL: None if queue is None else self.name(queue)}
        await self.client.merge_patch(
            CLAIMS.at("cam", self.place), {"metadata": {"labels": labels}}
        )

    async def status(self, queue: str) -> JsonObject:
        found = await self.client.get(QUEUES.at(self.name(queue)))
        return found.get("status") or {}

    async def events(self) -> list[str]:
        found = (await self.client.list(EVENTS.select(self.place))).items
        return [event["note"] for event in found if event["reason"] == "LabelEdited"]

    async def until_status(self, queue: str, right: Callable[[JsonObject], object]) -> JsonObject:
        return await until(lambda: self.status(queue), right)


@asynccontextmanager
async def following(stage: Stage, settings: StatusSettings = SETTINGS) -> AsyncIterator[None]:
    """What serve does: stores, world, writer and recorder."""
    cluster_world = ClusterWorld(stage.client, AccountingSettings())
    recorder = EventRecorder(stage.client, "moorage.dev/scheduler-plugin", "pod-1")
    writer = QueueStatusWriter(stage.client, cluster_world.world, stage.fence, settings)
    warnings = WarningRecorder(cluster_world.world, stage.fence, recorder.record)
    cluster_world.subscribe(writer.changed)
    running = [asyncio.create_task(cluster_world.run()), asyncio.create_task(recorder.run())]
    await until_true(lambda: not cluster_world.why_not_ready())
    running += [asyncio.create_task(each.run()) for each in (writer, warnings)]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.fixture
async def stage(apiserver: Cluster) -> AsyncIterator[Stage]:
    apiserver.kubectl("apply", "-f", str(CRDS))
    apiserver.kubectl("wait", "--for=condition=Established", "crd/queues.moorage.dev")
    async with connect(apiserver.kubeconfig) as client:
        place = await new_namespace(client)
        # Pods need the account; there is no controller here that makes it.
        apiserver.service_account_kubeconfig("default", namespace=place)
        stage = Stage(apiserver, UnsteadyClient(client), place)
        yield stage
        for name in stage.names.values():
            try:
                await client.delete(QUEUES.at(name))
            except NotFoundError:
                continue


def conditions(status: JsonObject) -> dict[str, str]:
    return {c["type"]: c["status"] for c in status.get("conditions", ())}


async def test_status_follows_what_is_charged(stage: Stage) -> None:
    await stage.queue("research", onvif=(-1, -1))
    await stage.queue("vision", parent=stage.name("research"), onvif=(0, 1))
    async with following(stage):
        ours, foreign = await stage.pod("a", "vision"), await stage.pod("b", "research")
        claim = await stage.claim("vision", ours, (ours, foreign))

        status = await stage.until_status("vision", lambda s: s.get("usage") == {"onvif": 1})
        above = await stage.until_status("research", lambda s: s.get("usage") == {"onvif": 1})
        await stage.client.replace(CLAIMS.path_of(claim, "status"), {**claim, "status": {}})
        free = await stage.until_status("vision", lambda s: s["usage"] == {"onvif": 0})
        await stage.until_status("research", lambda s: s["usage"] == {"onvif": 0})

    assert (status["claims"], above["claims"]) == (
        {"owned": 1, "sharedOut": 1},
        {"owned": 0, "sharedOut": 0},
    )
    assert conditions(status).keys() == {"Accepted", "OverQuota", "NearLimit"}
    assert conditions(above).keys() == conditions(free).keys() == {"Accepted"}
    assert status["usageNonPreemptible"] == {"onvif": 0}
    assert status["observedGeneration"] == 1


async def test_kubectl_shows_a_queue_in_columns_that_people_read(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2), gpu=(0, -1))
    async with following(stage):
        pod = await stage.pod("a", "vision")
        await stage.claim("vision", pod, (pod,))
        await stage.until_status("vision", lambda s: s.get("usage", {}).get("onvif") == 1)

    name = stage.name("vision")
    header, row = stage.cluster.kubectl("get", "queues.moorage.dev", name).stdout.splitlines()
    wide = stage.cluster.kubectl("get", "queues.moorage.dev", name, "-o", "wide")

    columns = ["NAME", "PARENT", "USAGE/QUOTA/LIMIT", "WAITING", "ACCEPTED", "AGE"]
    assert header.split() == columns
    assert row.split()[:-1] == [name, "onvif", "1/1/2,", "gpu", "0/0/-", "0", "True"]
    assert {"OWNED", "SHARED", "PRIORITY"} < set(wide.stdout.splitlines()[0].split())


async def test_an_older_definition_gets_its_status_and_later_the_new_fields(stage: Stage) -> None:
    """Helm leaves definitions as they are, so the plugin may be newer than its own."""
    soon = StatusSettings(plain_seconds=1.0, recount_seconds=0.5)
    await stage.queue("vision", onvif=(1, 2))
    with older_definition(stage.cluster):
        await until(lambda: knows_summary(stage), lambda known: not known)
        async with following(stage, soon):
            status = await stage.until_status("vision", conditions)
            assert status["usage"] == {"onvif": 0}
            assert not {"summary", "waiting"} & status.keys()

            stage.cluster.kubectl("apply", "-f", str(CRDS))

            await stage.until_status("vision", lambda s: s.get("summary") == "onvif 0/1/2")


@contextmanager
def older_definition(cluster: Cluster) -> Iterator[None]:
    """The Queue's as it was before its status had texts for columns."""
    (definition,) = documents_in(CRDS)[CRDS / "queues.moorage.dev.yaml"]
    (version,) = definition["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ("summary", "waiting"):
        del fields[name]
    columns = version["additionalPrinterColumns"]
    version["additionalPrinterColumns"] = [c for c in columns if c["name"] == "Parent"]
    try:
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
        yield
    finally:
        cluster.kubectl("apply", "-f", str(CRDS))


async def knows_summary(stage: Stage) -> bool:
    """Whether the API server takes that field of a Queue's status: a definition takes a moment."""
    name = stage.name("vision")
    path = QUEUES.at(name, subresource="status")
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}}
    try:
        await stage.client.apply(
            path, {**body, "status": {"summary": "new"}}, force=True, options=SOMEBODY
        )
    except ServerFaultError as error:
        assert "field not declared in schema" in error.message  # noqa: PT017
        return False
    return True


async def test_label_edited_behind_the_policies_counts_and_is_told(stage: Stage) -> None:
    for queue in ("vision", "robots"):
        await stage.queue(queue, onvif=(1, 2))
    pod = await stage.pod("a", "vision")
    await stage.claim("vision", pod, (pod,))
    async with following(stage):
        await stage.until_status("vision", lambda s: s.get("usage") == {"onvif": 1})
        await stage.label("robots")

        await stage.until_status("vision", lambda s: s.get("usage") == {"onvif": 0})
        await stage.until_status("robots", lambda s: s.get("usage") == {"onvif": 1})
        told = await until(stage.events, bool)

    assert told == [
        f'ResourceClaim {stage.place}/cam is labelled "{stage.name("robots")}": a user edited its'
        f' label while it was allocated. Before, it was labelled "{stage.name("vision")}". Now'
        f' queue "{stage.name("robots")}" is charged.'
    ]


async def test_missing_parent_is_a_condition_until_it_comes(stage: Stage) -> None:
    await stage.queue("vision", parent=stage.name("research"))
    async with following(stage):
        status = await stage.until_status("vision", conditions)
        assert conditions(status) == {"Accepted": "True", "ParentMissing": "True"}

        await stage.queue("research")

        await stage.until_status("vision", lambda s: "ParentMissing" not in conditions(s))


async def test_status_that_somebody_else_wrote_is_put_right(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2))
    async with following(stage):
        await stage.until_status("vision", lambda s: s.get("usage") == {"onvif": 0})
        path = QUEUES.at(stage.name("vision"), subresource="status")
        forged = await stage.client.merge_patch(
            path, {"status": {"usage": {"onvif": 7}}}, options=SOMEBODY
        )

        await stage.until_status("vision", lambda s: s["usage"] == {"onvif": 0})

    assert forged["status"]["usage"] == {"onvif": 7}


async def test_nothing_is_written_while_the_lease_is_another_s(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2))
    stage.fence.closed = "The Lease is another's."
    async with following(stage):
        await until_true(lambda: len(stage.fence.asked) >= 2)
        assert stage.client.applied == []

        stage.fence.closed = ""

        await stage.until_status("vision", conditions)


async def test_changes_during_a_write_become_one_write_more(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2))
    async with following(stage):
        await stage.until_status("vision", conditions)
        stage.client.applied.clear()
        stage.client.open.clear()
        claim = await stage.claim("vision")
        await until_true(lambda: stage.client.applied)
        for number in range(10):
            labels = {"metadata": {"labels": {"number": str(number)}}}
            await stage.client.merge_patch(CLAIMS.path_of(claim), labels)
        newest = await stage.client.get(CLAIMS.path_of(claim))
        await stage.client.replace(CLAIMS.path_of(claim, "status"), {**newest, "status": {}})
        stage.client.open.set()

        # Before the writes that were held back the status is what it is after them.
        await until_true(lambda: len(stage.client.applied) > 1)
        await stage.until_status("vision", lambda s: s["requested"] == {"onvif": 0})
        await stage.until_status("vision", lambda s: s["usage"] == {"onvif": 0})

    assert [body["status"]["usage"]["onvif"] for body in stage.client.applied] == [1, 0]


async def test_write_that_failed_is_tried_again(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2))
    stage.client.failures = 1
    async with following(stage):
        await stage.until_status("vision", conditions)

    assert len(stage.client.applied) == 2


async def test_status_that_is_right_is_not_written_after_a_restart(stage: Stage) -> None:
    await stage.queue("vision", onvif=(1, 2))
    async with following(stage):
        await stage.until_status("vision", conditions)
    stage.client.applied.clear()
    async with following(stage):
        await stage.queue("robots")
        await stage.until_status("robots", conditions)

    assert [body["metadata"]["name"] for body in stage.client.applied] == [stage.name("robots")]
