"""What the world hears of objects that come, change, become unreadable and go.

Objects are noted as an own write's answer would be; tests/e2e/plugin has the real API server.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest

from driver.api import DRIVER_NAME
from kube.calls.api import ApiClient, ApiError, ForbiddenError, NotFoundError
from kube.calls.apiserver_reads import Page
from kube.resources import ObjectPath, Resource, Selection
from kube.shapes.claims import Claim
from kube.shapes.pods import Pod
from kube.shapes.reading import UnreadableError
from kube.shapes.selection import Taint
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    PodChanged,
    WorldChange,
)
from scheduler_plugin.cluster import feeds
from scheduler_plugin.cluster.feeds import Kind
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import QUEUE_LABEL, QueueName
from scheduler_plugin.objects.projections import project_claim, project_pod
from tests.fakes.taint_rules import a_rule_object
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim_object,
    a_pod_object,
    a_queue_object,
    a_result,
    a_slice_object,
    amounts,
    claim_uid,
    our_class,
    pod_uid,
    usage,
)


def versioned(obj: dict[str, Any], version: int) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


class FakeClient:
    """Answers reads from a dictionary, and lists with an error of the test's choice."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.answers: list[ApiError | bool] = []
        self.asked = asyncio.Event()
        self.served: Resource | None = None
        self.listed: list[str] = []

    async def get(self, path: ObjectPath, *, timeout_seconds: float) -> Any:
        try:
            return self.objects[str(path)]
        except KeyError:
            raise NotFoundError("none") from None

    async def serves(self, _: object) -> bool:
        self.asked.set()
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def in_served_version(self, _: Resource) -> Resource | None:
        return self.served

    async def pages(self, selection: Selection, **_: object) -> AsyncIterator[Page]:
        self.listed.append(selection.url_path)
        self.asked.set()
        await asyncio.Event().wait()
        yield Page((), 1)


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def cluster(client: FakeClient) -> ClusterWorld:
    found = ClusterWorld(cast(ApiClient, client), SETTINGS)
    for kind in found.kinds:
        kind.feed()
    found.world.put_class(our_class())
    return found


def put_queue(cluster: ClusterWorld, obj: dict[str, Any], version: int) -> None:
    cluster.kinds.queues.store.note(versioned(obj, version))


def test_own_writes_are_charged_at_once(cluster: ClusterWorld) -> None:
    claim = a_claim_object("cam", queue="vision", results=[a_result()])
    cluster.note_claim(versioned(claim, 5))

    assert usage(cluster.world, "vision") == amounts(onvif=1)


def test_older_answer_changes_nothing(cluster: ClusterWorld) -> None:
    cluster.note_claim(versioned(a_claim_object(queue="vision", results=[a_result()]), 5))
    cluster.note_claim(versioned(a_claim_object(queue="vision"), 4))

    assert usage(cluster.world, "vision") == amounts(onvif=1)


def test_version_of_a_claim_is_known_though_nothing_that_counts_changed(
    cluster: ClusterWorld,
) -> None:
    cluster.note_claim(versioned(a_claim_object(), 5))
    cluster.note_claim(versioned(a_claim_object(), 6))

    claim = cluster.world.facts.claim(claim_uid("cam"))
    assert claim is not None
    assert claim.resource_version == "6"


def test_unreadable_claim_stays_charged_as_it_was(
    cluster: ClusterWorld, caplog: pytest.LogCaptureFixture
) -> None:
    claim = a_claim_object(queue="vision", results=[a_result()])
    cluster.note_claim(versioned(claim, 5))
    odd = {**claim, "status": {"allocation": {"devices": 7}}}
    cluster.note_claim(versioned(odd, 6))
    cluster.note_claim(versioned(odd, 7))

    assert usage(cluster.world, "vision") == amounts(onvif=1)
    assert "status.allocation.devices: Expected `object | null`, got `int`." in caplog.text

    cluster.note_claim(versioned(a_claim_object(queue="vision"), 8))
    assert usage(cluster.world, "vision") == amounts()


def test_unreadable_claim_of_another_uid_is_another_claim(cluster: ClusterWorld) -> None:
    claim = a_claim_object(queue="vision", results=[a_result()])
    cluster.note_claim(versioned(claim, 5))
    odd = a_claim_object(uid="other")
    cluster.note_claim(versioned({**odd, "spec": 7}, 6))

    assert usage(cluster.world, "vision") == amounts()
    assert list(cluster.world.facts.claims()) == []


def test_pod_that_is_still_to_be_bound_is_kept_until_then(cluster: ClusterWorld) -> None:
    cluster.note_pod(versioned(a_pod_object("plain"), 5))
    assert [pod.name for pod in cluster.world.facts.pods()] == ["plain"]

    cluster.note_pod(versioned(a_pod_object("plain", node="node-a"), 6))
    assert list(cluster.world.facts.pods()) == []


def test_pod_that_uses_no_devices_is_not_kept(cluster: ClusterWorld) -> None:
    others = {"schedulerName": "default-scheduler"}
    cluster.note_pod(versioned(a_pod_object("elsewhere", spec=others), 3))
    cluster.note_pod(versioned(a_pod_object("bound", node="node-a"), 4))
    cluster.note_pod(versioned(a_pod_object("ended", phase="Succeeded"), 5))
    cluster.note_pod(versioned(a_pod_object("user", claims=["cam"]), 6))

    assert [pod.name for pod in cluster.world.facts.pods()] == ["user"]


def test_unreadable_queue_counts_as_before(cluster: ClusterWorld) -> None:
    put_queue(cluster, a_queue_object("vision", parent="research"), 5)
    put_queue(cluster, a_queue_object("vision", parent="lab", claimSharing=7), 6)

    kept = cluster.world.facts.tree.get(QueueName("vision"))
    assert kept is not None
    assert kept.parent == "research"


def test_who_subscribed_hears_after_the_world_and_one_that_fails_costs_others_nothing(
    cluster: ClusterWorld,
) -> None:
    heard: list[tuple[WorldChange, bool]] = []

    def fails(_: WorldChange) -> None:
        raise RuntimeError("a listener's own fault")

    def listens(change: WorldChange) -> None:
        facts = cluster.world.facts
        heard.append((change, facts.claim_named("default", "cam") is not None))

    cluster.subscribe(fails)
    cluster.subscribe(listens)
    cluster.note_claim(versioned(a_claim_object(), 5))
    cluster.note_pod(versioned(a_pod_object(claims=["cam"]), 6))

    assert heard == [(ClaimChanged(claim_uid("cam")), True), (PodChanged(pod_uid("a")), True)]


async def test_all_who_wait_are_asked_after_each_change(cluster: ClusterWorld) -> None:
    facts = cluster.world.facts
    waits = [
        asyncio.create_task(
            cluster.wait_for(lambda: facts.claim_named("default", "a") is not None, 5)
        ),
        asyncio.create_task(
            cluster.wait_for(lambda: facts.claim_named("default", "b") is not None, 5)
        ),
        asyncio.create_task(cluster.wait_for(lambda: False, 0.01)),
    ]
    await asyncio.sleep(0)
    cluster.note_claim(versioned(a_claim_object("b"), 5))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    assert not waits[0].done()
    cluster.note_claim(versioned(a_claim_object("a"), 6))

    assert await asyncio.gather(*waits) == [True, True, False]
    assert len(cluster.waiters) == 0


async def test_refreshed_claim_is_the_newest_that_is_known(
    client: FakeClient, cluster: ClusterWorld
) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/cam"
    client.objects[path] = versioned(a_claim_object(), 5)
    cluster.note_claim(versioned(a_claim_object(queue="vision"), 6))

    found = await cluster.refresh_claim("default", "cam")

    assert found is not None
    assert (found.resource_version, found.label) == ("6", "vision")


async def test_claim_that_a_read_does_not_find_is_known_to_be_gone(cluster: ClusterWorld) -> None:
    assert await cluster.refresh_claim("default", "cam") is None

    assert cluster.world.facts.is_gone_claim(("default", "cam"))
    cluster.note_claim(versioned(a_claim_object(), 5))
    assert not cluster.world.facts.is_gone_claim(("default", "cam"))


def test_instance_and_configuration_of_one_name_in_two_namespaces_are_two(
    cluster: ClusterWorld,
) -> None:
    kinds = {str(kind): kind for kind in cluster.kinds}
    for number, namespace in enumerate(("one", "two"), start=1):
        metadata = {"namespace": namespace, "uid": namespace, "resourceVersion": str(number)}
        spec = {"configurationName": "lidar"}
        kinds["instances of akri.sh/v0"].store.note(
            {"metadata": {"name": "lidar-abc", **metadata}, "spec": spec}
        )
        kinds["configurations of akri.sh/v0"].store.note(
            {"metadata": {"name": "lidar", **metadata}}
        )
    gone = {"namespace": "two", "uid": "two", "resourceVersion": "9"}
    kinds["instances of akri.sh/v0"].store.take_deletion(
        {"metadata": {"name": "lidar-abc", **gone}}
    )
    kinds["configurations of akri.sh/v0"].store.take_deletion(
        {"metadata": {"name": "lidar", **gone}}
    )

    catalog = cluster.world.facts.catalog
    assert catalog.accounted_resource("akri.sh/lidar-abc") == ResourceKey("lidar")
    assert catalog.accounted_resource("akri.sh/lidar") == ResourceKey("lidar")


def test_not_ready_names_the_kind_that_is_missing(cluster: ClusterWorld) -> None:
    assert cluster.why_not_ready() == "deviceclasses of resource.k8s.io/v1 are not known yet."


def test_not_ready_names_the_queue_with_an_entry_of_another_version(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it owns stays charged, by its other entries, too; the dashboard shows it."""
    monkeypatch.setattr(cluster, "why_not_known", lambda: "")
    entries = [{"deviceClass": "onvif", "limit": 2}]
    odd = [*entries, {"deviceClass": "gpu", "limit": 2, "per": "node"}]
    put_queue(cluster, a_queue_object("all"), 1)
    put_queue(cluster, a_queue_object(parent="all", resources=entries), 2)
    claim = a_claim_object("cam", queue="vision", results=[a_result()])
    cluster.note_claim(versioned(claim, 5))
    assert cluster.why_not_ready() == ""

    put_queue(cluster, a_queue_object(parent="all", resources=odd), 3)

    assert cluster.why_not_ready() == (
        'Queue "vision" has an entry of another version: spec.resources[1]: Object contains unknown'
        " field `per`."
    )
    assert usage(cluster.world, "all") == amounts(onvif=1)
    assert cluster.world.facts.tree.share(QueueName("vision"), ResourceKey("onvif")) is not None
    put_queue(cluster, a_queue_object(parent="all", resources=entries), 4)
    assert cluster.why_not_ready() == ""


async def test_optional_kind_that_is_forbidden_is_not_taken_for_absent(
    client: FakeClient, cluster: ClusterWorld
) -> None:
    """Otherwise a missing permission would quietly stop all accounting."""
    client.answers = [ForbiddenError("may not list", status=403, reason="Forbidden")]
    kind = cluster.kinds.claims
    task = asyncio.create_task(kind.run())
    await client.asked.wait()
    await asyncio.sleep(0)
    task.cancel()

    assert not kind.settled.is_set()
    assert kind.why_not_ready().endswith("are not known yet: 403 Forbidden: may not list")


async def test_kind_that_is_not_served_keeps_nobody_and_is_asked_for_again_on_a_hint(
    client: FakeClient, cluster: ClusterWorld
) -> None:
    client.answers = [False, False]
    kind = cluster.kinds.claims
    task = asyncio.create_task(kind.run())
    await kind.settled.wait()
    assert kind.why_not_ready() == ""

    client.asked.clear()
    cluster.note_pod(versioned(a_pod_object(claims=["cam"]), 5))
    async with asyncio.timeout(5):
        await client.asked.wait()
    task.cancel()


async def test_podgroups_are_read_in_the_version_that_is_served(client: FakeClient) -> None:
    served = Resource("scheduling.k8s.io", "v1beta1", "podgroups")
    client.served = served
    cluster = ClusterWorld(
        cast(ApiClient, client), SETTINGS, pod_groups=[replace(served, version="")]
    )
    (kind,) = (kind for kind in cluster.kinds if kind.resource.plural == "podgroups")
    kind.feed()
    assert str(kind) == "podgroups of scheduling.k8s.io"

    task = asyncio.create_task(kind.run())
    await client.asked.wait()
    await asyncio.sleep(0)
    metadata = {"namespace": "default", "name": "train", "uid": "1"}
    kind.store.note(versioned({"metadata": metadata}, 5))
    task.cancel()

    assert str(kind) == "podgroups of scheduling.k8s.io/v1beta1"
    assert client.listed == ["/apis/scheduling.k8s.io/v1beta1/podgroups"]
    found = cluster.world.facts.pod_queues.own_group("default", "train")
    assert found is not None
    assert found.api_version == "scheduling.k8s.io/v1beta1"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "RECHECK_SECONDS", 0.001)


def _followed(client: FakeClient, served: Resource) -> Kind[Any]:
    client.served = served
    given = replace(served, version="")
    cluster = ClusterWorld(cast(ApiClient, client), SETTINGS, pod_groups=[given])
    return next(kind for kind in cluster.kinds if kind.resource.plural == "podgroups")


ALPHA = Resource("scheduling.k8s.io", "v1alpha2", "podgroups")


@pytest.mark.parametrize("later", [replace(ALPHA, version="v1beta1"), None])
@pytest.mark.usefixtures("quick")
async def test_kind_that_moves_to_another_version_ends_the_process(
    client: FakeClient, later: Resource | None
) -> None:
    """Otherwise PodGroups stay as they were, and no election catches up any more."""
    kind = _followed(client, ALPHA)
    task = asyncio.create_task(kind.run())
    await client.asked.wait()

    kind.store.stats.failures_in_a_row = 1
    client.served = later

    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(5):
            await task
    assert [str(error) for error in raised.value.exceptions] == [
        "podgroups of scheduling.k8s.io/v1alpha2 are no longer served;"
        " what is served is followed anew"
    ]


@pytest.mark.parametrize(
    "sequence",
    [
        ["v1beta1", "v1beta1", "v1alpha2"],
        ["v1beta1", "v1beta1", "fails"],
    ],
)
@pytest.mark.usefixtures("quick")
async def test_kind_stays_while_api_servers_differ_or_do_not_answer(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, sequence: list[str]
) -> None:
    kind = _followed(client, ALPHA)
    task = asyncio.create_task(kind.run())
    await client.asked.wait()
    answers, rounds = itertools.cycle(sequence), 20
    asked, done = itertools.count(1), asyncio.Event()

    async def served(_: Resource) -> Resource:
        if next(asked) == rounds:
            done.set()
        if (answer := next(answers)) == "fails":
            raise ApiError("no answer", status=503, reason="")
        return replace(ALPHA, version=answer)

    monkeypatch.setattr(client, "in_served_version", served)
    kind.store.stats.failures_in_a_row = 1
    async with asyncio.timeout(5):
        await done.wait()

    assert not task.done()
    task.cancel()


@pytest.mark.usefixtures("quick")
async def test_kind_that_is_watched_is_not_looked_for_again(client: FakeClient) -> None:
    """A newer version beside the one that is followed is no reason to begin again."""
    kind = _followed(client, ALPHA)
    task = asyncio.create_task(kind.run())
    await client.asked.wait()
    client.served = replace(ALPHA, version="v1beta1")
    await asyncio.sleep(0.05)

    assert not task.done()
    task.cancel()


def test_pod_that_is_sent_is_the_known_one_in_the_same_version_only(cluster: ClusterWorld) -> None:
    obj = versioned(a_pod_object("reader", claims=["cam"]), 5)
    cluster.note_pod(obj)
    (known,) = cluster.world.facts.pods()

    assert cluster.read_pod(obj) is known
    for other in (versioned(obj, 6), {**obj, "metadata": {**obj["metadata"], "uid": "other"}}):
        assert cluster.read_pod(other) is not known
    wrong: tuple[dict[str, Any], ...] = ({"uid": ["x"]}, {"name": []})
    for odd in wrong:
        with pytest.raises(UnreadableError):
            cluster.read_pod({"metadata": {**obj["metadata"], **odd}})


def test_shape_says_what_the_whole_object_says(cluster: ClusterWorld) -> None:
    claim = versioned(a_claim_object(queue="vision", results=[a_result()]), 5)
    pod = versioned(a_pod_object("reader", claims=["cam"], requests={"akri.sh/cam": "2"}), 5)

    assert project_claim(msgspec.convert(claim, Claim), queue_label=QUEUE_LABEL) == project_claim(
        claim, queue_label=QUEUE_LABEL
    )
    assert project_pod(msgspec.convert(pod, Pod), SETTINGS) == project_pod(pod, SETTINGS)


def test_slices_tell_the_world_what_counts_and_the_table_of_devices_all(
    cluster: ClusterWorld,
) -> None:
    (slices,) = (kind.store for kind in cluster.kinds if str(kind).startswith("resourceslices"))
    told: list[WorldChange] = []
    cluster.subscribe(told.append)
    device, tainted = DeviceId(DRIVER_NAME, "onvif", "cam"), [{"key": "x", "effect": "NoSchedule"}]
    found = a_slice_object("s", ("onvif", "cam"), nodeName="n")
    found["metadata"]["uid"] = "uid-of-s"

    slices.note(versioned(found, 5))
    offer = cluster.inventory.devices.offer(device)
    changes = cluster.inventory.devices.changes
    slices.note(versioned(found, 6))
    assert cluster.inventory.devices.changes == changes, "the same slice is no change"
    body = {**found["spec"]["devices"][0], "taints": tainted}
    slices.note(versioned({**found, "spec": {**found["spec"], "devices": [body]}}, 7))
    later = cluster.inventory.devices.offer(device)

    assert cluster.world.facts.catalog.configuration_of(device) == "onvif"
    assert cluster.inventory.devices.on("n") == (device,)
    assert offer is not None
    assert later is not None
    assert (offer.taints, later.taints) == ((), (Taint("x", effect="NoSchedule"),))
    assert told == [], "nothing that queues count has changed"


def test_a_rule_of_either_version_taints_a_device_and_is_heard_of(cluster: ClusterWorld) -> None:
    kinds = [kind for kind in cluster.kinds if str(kind).startswith("devicetaintrules")]
    heard: list[WorldChange] = []
    cluster.subscribe(heard.append)

    assert [str(kind).rpartition("/")[2] for kind in kinds] == ["v1", "v1beta2"]
    for kind in kinds:
        kind.store.note(versioned(a_rule_object("repair"), 5))
    assert [rule.name for rule in cluster.world.facts.catalog.taint_rules] == ["repair"]
    assert len(heard) == 2
