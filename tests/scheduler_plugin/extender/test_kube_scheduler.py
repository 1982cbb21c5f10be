"""What kube-scheduler is answered, and in which order things are seen, judged and written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.kube_scheduler_binds import ATTEMPTS
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease
from scheduler_plugin.extender.messages import BindArguments, NotAnswered, Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.bindings import BindFailed
from scheduler_plugin.objects.claims import ClassName, DeviceId, Result
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodClaim
from scheduler_plugin.objects.projections import is_relevant
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.fakes.cluster import FakeBinder, FakeCluster
from tests.fakes.pods import running
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_group,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_world,
    amounts,
    an_allocated_claim,
    claim_uid,
    moment,
    pod_uid,
    put,
    their_class,
    usage,
)
from tests.scheduler_plugin.reclaiming.devices_builders import a_node_object as a_ready_node
from tests.scheduler_plugin.reclaiming.devices_builders import a_slice_object


class FakeKubeSchedulerLease:
    """A Lease that is ours until a test says otherwise."""

    not_ours = ""
    is_taken_soon = False

    def why_not_ready(self) -> str:
        return self.not_ours

    async def await_lease(self, seconds: float) -> None:
        if self.is_taken_soon:
            self.not_ours = ""


@dataclass
class Scene:
    """Two queues with a limit of one `onvif` each, and the extender over a fake cluster."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    lease: FakeKubeSchedulerLease = field(default_factory=FakeKubeSchedulerLease)
    now: datetime = NOW

    def __post_init__(self) -> None:
        put(self.cluster.world, *(a_queue(name, onvif=(1, 1)) for name in ("vision", "robots")))
        self.binder = FakeBinder(self.cluster)
        self.extender = Extender(
            cast(ClusterWorld, self.cluster),
            self.binder,
            cast(KubeSchedulerLease, self.lease),
            lambda: self.now,
            lambda: moment(self.now),
        )

    def pod(self, name: str, **fields: Any) -> dict[str, Any]:
        """A pod in the API; as kube-scheduler sends it."""
        body = a_pod_object(name, **fields)
        view = pod_view(body, SETTINGS)
        self.cluster.pods[name] = view
        if is_relevant(view, SETTINGS) and not self.cluster.lags:
            put(self.cluster.world, view)
        return body

    async def bind(self, name: str, node: str = "node-a", uid: str | None = None) -> str:
        arguments = BindArguments(
            name=name, namespace="default", uid=uid or pod_uid(name), node=node
        )
        return await self.extender.bind(arguments)

    def sharers(self, **queues: str) -> None:
        """Pods that share the claim `cam`, filtered in this order and past PreBind."""
        self.cluster.store(a_claim())
        for name, queue in queues.items():
            assert self.extender.filter(self.pod(name, claims=["cam"], queue=queue)) == Passed()
        for name in queues:
            self.cluster.reserve("cam", name)

    @property
    def owner(self) -> tuple[str, str]:
        claim = self.cluster.claims["cam"]
        return claim.label, claim.owner_pod


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_filter_passes_a_pod_within_its_limit_and_remembers_it(scene: Scene) -> None:
    scene.cluster.store(a_claim())

    assert scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision")) == Passed()

    owner = scene.cluster.world.assumptions.owner(claim_uid("cam"))
    assert owner is not None
    assert owner.queue == "vision"


def test_filter_refuses_with_the_reason_and_remembers_nothing(scene: Scene) -> None:
    scene.cluster.store(a_claim("one"), a_claim("two"))
    scene.extender.filter(scene.pod("a", claims=["one"], queue="vision"))

    answer = scene.extender.filter(scene.pod("b", claims=["two"], queue="vision"))

    assert isinstance(answer, Refused)
    assert answer.reason is Reason.OVER_LIMIT
    assert len(scene.cluster.world.assumptions) == 1


def test_filter_of_the_same_pod_again_counts_it_once(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    body = scene.pod("a", claims=["cam"], queue="vision")

    assert [scene.extender.filter(body) for _ in range(3)] == [Passed()] * 3
    assert len(scene.cluster.world.assumptions) == 1


def test_a_pod_that_was_deleted_meanwhile_holds_no_room(scene: Scene) -> None:
    """kube-scheduler hears of it later, or asked before."""
    scene.cluster.store(a_claim("one"), a_claim("two"))
    scene.extender.filter(scene.pod("first", claims=["one"], queue="vision"))
    body = scene.pod("gone", claims=["two"], queue="vision")
    assert isinstance(scene.extender.filter(body), Refused)

    for pod in ("first", "gone"):
        scene.cluster.world.delete_pod(pod_uid(pod))

    assert scene.extender.filter(body) == NotAnswered("Pod default/gone ended, or was deleted.")
    assert len(scene.cluster.world.assumptions) == 0


@pytest.mark.parametrize("ended", [True, False])
def test_a_pod_that_never_will_be_bound_holds_no_room(scene: Scene, ended: bool) -> None:
    """A Job's pod has a finalizer: it is marked as deleted, and is there for some time."""
    body = scene.pod("marked", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(body) == Passed()

    gone = replace(scene.cluster.pods["marked"], ended=ended, deleting=not ended)
    scene.cluster.store(gone)

    assert len(scene.cluster.world.assumptions) == 0
    answer = scene.extender.filter(body)
    assert answer == NotAnswered("Pod default/marked ended, or was deleted.")
    other = scene.pod("other", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(other) == Passed()


async def test_a_pod_that_is_bound_already_is_not_counted_twice(scene: Scene) -> None:
    """kube-scheduler asks once more, since it did not hear the answer to its Bind."""
    put(scene.cluster.world, a_queue("vision", onvif=(2, 2)))
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    scene.extender.filter(body)
    assert await scene.bind("a") == ""

    assert scene.extender.filter(body) == Passed()
    assert await scene.bind("a") == ""

    other = scene.pod("other", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(other) == Passed()


def test_a_pod_that_is_there_again_is_believed_in(scene: Scene) -> None:
    """As after a restored backup."""
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    scene.cluster.world.delete_pod(pod_uid("a"))
    put(scene.cluster.world, scene.cluster.pods["a"])

    assert scene.extender.filter(body) == Passed()
    assert len(scene.cluster.world.assumptions) == 1


def test_room_is_held_for_no_longer_where_the_clock_is_set_back(scene: Scene) -> None:
    first, second = (
        scene.pod(name, requests={"akri.sh/onvif": 1}, queue="vision") for name in ("a", "b")
    )
    assert scene.extender.filter(first) == Passed()

    scene.now -= timedelta(seconds=1)
    assert isinstance(scene.extender.filter(second), Refused), "it may still be bound"
    scene.now -= timedelta(hours=1)
    assert scene.extender.filter(second) == Passed()


def test_preempt_refuses_what_the_verdict_refuses_and_assumes_nothing(scene: Scene) -> None:
    scene.cluster.store(a_claim("one"), a_claim("two"))
    scene.extender.filter(scene.pod("a", claims=["one"], queue="vision"))

    refused = scene.extender.preempt(scene.pod("b", claims=["two"], queue="vision"))
    passed = scene.extender.preempt(scene.pod("c", claims=["two"], queue="robots"))

    assert isinstance(refused, Refused)
    assert passed == Passed()
    assert scene.extender.preempt(scene.pod("plain")) == Passed()
    assert len(scene.cluster.world.assumptions) == 1


async def test_nobody_leaves_for_a_pod_that_rests_or_cannot_be_bound(scene: Scene) -> None:
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    scene.binder.failures += [BindFailed("refused", is_certain=True)] * 2
    for _ in range(2):
        assert scene.extender.filter(body) == Passed()
        assert scene.extender.preempt(body) == Passed()
        assert await scene.bind("a") == "refused"

    rests = scene.extender.preempt(body)

    assert isinstance(rests, NotAnswered)
    assert rests == scene.extender.filter(body)
    scene.now += timedelta(minutes=1)
    assert await scene.bind("a") == ""
    assert isinstance(scene.extender.preempt(body), NotAnswered), "it has its node"
    scene.cluster.world.delete_pod(pod_uid("a"))
    gone = scene.extender.preempt(body)
    assert gone == NotAnswered("Pod default/a ended, or was deleted.")


@pytest.mark.parametrize("ask", ["filter", "preempt"])
def test_a_pod_that_cannot_be_one_is_not_answered(scene: Scene, ask: str) -> None:
    answer = getattr(scene.extender, ask)({"metadata": {"name": "a", "uid": 7}})

    assert isinstance(answer, NotAnswered)
    assert "metadata.uid" in answer.why


@pytest.mark.parametrize("part", ["cluster", "lease"])
async def test_nothing_is_answered_before_everything_is_known(scene: Scene, part: str) -> None:
    if part == "cluster":
        scene.cluster.not_ready = "the pods are not known yet"
    else:
        scene.lease.not_ours = "another scheduler leads"
    why = scene.extender.why_not_ready()
    body = scene.pod("a")

    assert why
    assert scene.extender.filter(body) == NotAnswered(why)
    assert scene.extender.preempt(body) == NotAnswered(why)
    assert await scene.bind("a") == why
    assert not scene.binder.bound


async def test_a_bind_waits_for_the_lease_that_is_about_to_be_ours(scene: Scene) -> None:
    scene.lease.not_ours, scene.lease.is_taken_soon = "another scheduler leads", True
    scene.pod("a")

    assert await scene.bind("a") == ""


async def test_a_pod_is_bound_that_another_bound(scene: Scene) -> None:
    """Whatever the watch says, which lags where this process was stopped."""
    scene.pod("a", claims=["cam"], queue="vision")
    arguments = BindArguments("a", "default", pod_uid("a"), "node-a")
    assert not await scene.extender.is_bound(arguments)
    scene.cluster.lags = True
    scene.cluster.store(replace(scene.cluster.pods["a"], node="node-b"))

    assert await scene.extender.is_bound(arguments)
    remade = BindArguments("a", "default", pod_uid("b"), "node-a")
    assert not await scene.extender.is_bound(remade)
    scene.cluster.is_away = True
    assert not await scene.extender.is_bound(arguments)


async def test_the_first_pod_to_bind_becomes_the_owner(scene: Scene) -> None:
    scene.sharers(a="vision", b="vision")

    assert await scene.bind("a") == ""
    assert await scene.bind("b", "node-b") == ""

    assert scene.binder.owner_writes == [("cam", "vision", pod_uid("a"))]
    assert scene.binder.bound == {"a": ("node-a", "vision"), "b": ("node-b", "vision")}
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)
    assert len(scene.cluster.world.assumptions) == 0


async def test_a_foreign_pod_that_binds_first_writes_the_owner_that_was_decided(
    scene: Scene,
) -> None:
    scene.sharers(a="vision", b="robots")

    assert await scene.bind("b") == ""

    assert scene.owner == ("vision", pod_uid("a"))
    assert usage(scene.cluster.world, "robots") == amounts()


async def test_the_same_after_a_restart(scene: Scene) -> None:
    scene.sharers(a="vision", b="robots")
    later = FakeCluster(pods=scene.cluster.pods, claims=scene.cluster.claims)
    restarted = Scene(later)
    later.catch_up()

    assert await restarted.bind("b") == ""

    assert restarted.owner == ("vision", pod_uid("a"))


async def test_many_binds_of_one_claim_write_one_owner(scene: Scene) -> None:
    names = [f"p{number}" for number in range(50)]
    scene.sharers(**dict.fromkeys(names, "vision"))

    answers = await asyncio.gather(*(scene.bind(name) for name in reversed(names)))

    assert set(answers) == {""}
    assert scene.binder.owner_writes == [("cam", "vision", pod_uid("p0"))]
    assert len(scene.binder.requests) == 1, "the others waited for the first"
    assert len(scene.binder.bound) == 50


async def test_a_pod_that_waited_for_a_write_sees_afresh_what_became_of_its_claim(
    scene: Scene,
) -> None:
    scene.sharers(a="vision", b="vision")

    async def unreserved() -> None:
        await asyncio.sleep(0)  # The other pod has seen its reservation by then, and waits.
        claim = scene.cluster.claims["cam"]
        scene.cluster.store(replace(claim, reserved_for=(pod_uid("a"),)))

    scene.binder.before_write.append(unreserved)

    answers = await asyncio.gather(scene.bind("a"), scene.bind("b"))

    assert answers[0] == ""
    assert "is not reserved" in answers[1]


async def test_bind_waits_for_the_watch_before_it_reads(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision"))
    scene.cluster.lags = True
    scene.cluster.reserve("cam", "a")
    asyncio.get_running_loop().call_soon(scene.cluster.catch_up)

    assert await scene.bind("a") == ""
    assert scene.cluster.reads == []


async def test_bind_waits_for_the_namespace_that_says_who_may_use_the_queue() -> None:
    """After a restart, say: kube-scheduler's decision is older than what is known."""
    scene = Scene(FakeCluster(a_world(namespaces=())))
    scene.cluster.store(a_claim())
    scene.pod("a", claims=["cam"], queue="vision")
    scene.cluster.reserve("cam", "a")

    binding = asyncio.create_task(scene.bind("a"))
    await asyncio.sleep(0)
    scene.cluster.world.put_namespace(NamespaceView("default", {}))

    assert await binding == ""
    assert scene.owner[0] == "vision"


async def test_bind_reads_a_claim_that_the_watch_does_not_bring(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision"))
    scene.cluster.lags = True
    scene.cluster.reserve("cam", "a")

    assert await scene.bind("a") == ""
    assert scene.cluster.reads == ["claim cam"]


@pytest.mark.parametrize("bind_failed", [True, False])
async def test_bind_sees_afresh_what_an_earlier_attempt_had_reserved(
    scene: Scene, bind_failed: bool
) -> None:
    """kube-scheduler allocated anew, and the watch is silent: what is known looks fresh."""
    scene.cluster.store(a_claim(queue="vision"))
    body = scene.pod("a", claims=["cam"], queue="vision")
    assert scene.extender.filter(body) == Passed()
    scene.cluster.reserve("cam", "a")
    if bind_failed:
        scene.binder.failures.append(BindFailed("the node is gone", is_certain=True))
        assert await scene.bind("a") == "the node is gone"
    scene.cluster.lags = True
    scene.cluster.store(replace(scene.cluster.claims["cam"], results=None, reserved_for=()))
    assert scene.extender.filter(body) == Passed()
    two = (Result("req", "moorage.dev"), Result("req", "moorage.dev"))
    scene.cluster.store(
        replace(scene.cluster.claims["cam"], results=two, reserved_for=(pod_uid("a"),))
    )

    assert (await scene.bind("a")).startswith("OverLimit: ")

    assert scene.cluster.reads == ["claim cam"]
    assert not scene.binder.bound


async def test_bind_sees_that_the_claim_of_an_earlier_attempt_is_gone(scene: Scene) -> None:
    scene.cluster.store(a_claim(queue="vision"))
    body = scene.pod("a", claims=["cam"], queue="vision")
    assert scene.extender.filter(body) == scene.extender.filter(body) == Passed()
    scene.cluster.reserve("cam", "a")
    scene.cluster.lags = True
    del scene.cluster.claims["cam"]

    assert "is not reserved" in await scene.bind("a")


async def test_a_first_attempt_reads_nothing(scene: Scene) -> None:
    scene.cluster.store(a_claim(queue="vision"))
    scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision"))
    scene.cluster.reserve("cam", "a")

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == []


async def test_bind_reads_a_claim_that_another_pod_of_the_group_got_reserved(scene: Scene) -> None:
    """The reservation is older than the pod: the group may have got other devices since."""
    put(scene.cluster.world, a_group())
    claim = an_allocated_claim("cam", groups=["train"], queue="vision", owner_pod="gone")
    scene.cluster.store(claim)
    body = scene.pod("a", claims=["cam"], queue="vision", group="train")
    assert scene.extender.filter(body) == Passed()
    scene.cluster.lags = True
    two = (Result("req", "moorage.dev"), Result("req", "moorage.dev"))
    scene.cluster.store(replace(claim, results=two))

    why = await scene.bind("a")

    assert why.startswith("OverLimit: ")
    assert scene.cluster.reads == ["claim cam"]


async def test_bind_without_a_reservation_is_refused(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision"))

    why = await scene.bind("a")

    assert why == (
        "ResourceClaim default/cam has no allocation, or is not reserved for Pod default/a."
    )
    assert not scene.binder.bound


async def test_bind_judges_anew_with_the_real_allocation(scene: Scene) -> None:
    scene.cluster.store(a_claim("one"), a_claim("two"))
    body = scene.pod("b", claims=["two"], queue="vision")
    assert scene.extender.filter(body) == Passed()
    scene.cluster.world.assumptions.forget(pod_uid("b"))
    scene.extender.filter(scene.pod("a", claims=["one"], queue="vision"))
    for claim, pod in (("one", "a"), ("two", "b")):
        scene.cluster.reserve(claim, pod)
    assert await scene.bind("a") == ""

    why = await scene.bind("b")

    assert why.startswith("OverLimit: ")
    assert "b" not in scene.binder.bound
    assert len(scene.cluster.world.assumptions) == 0


async def test_no_limit_is_passed_when_the_owner_to_be_drops_out(scene: Scene) -> None:
    """Its place takes a pod of a queue that has no room; whoever binds first would write that."""
    put(scene.cluster.world, a_pod("runs", requests={"akri.sh/onvif": 1}, queue="robots", node="n"))
    scene.sharers(a="vision", b="robots", c="robots")
    scene.cluster.world.delete_pod(pod_uid("a"))

    assert (await scene.bind("c")).startswith("OverLimit: ")
    assert (await scene.bind("b")).startswith("OverLimit: ")

    assert scene.owner == ("", "")
    assert usage(scene.cluster.world, "robots") == amounts(onvif=1)
    assert len(scene.cluster.world.assumptions) == 0


async def test_a_pod_that_nothing_is_assumed_of_pays_once_with_those_who_wait(
    scene: Scene,
) -> None:
    scene.sharers(a="vision", b="vision")
    scene.cluster.world.assumptions.forget(pod_uid("b"))

    assert await scene.bind("b") == ""
    assert await scene.bind("a") == ""

    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)


async def test_bind_judges_again_when_somebody_else_wrote_the_claim(scene: Scene) -> None:
    scene.sharers(a="vision")

    async def relabelled() -> None:
        claim = scene.cluster.claims["cam"]
        scene.cluster.store(replace(claim, label=QueueName("robots")))

    scene.binder.before_write.append(relabelled)

    assert await scene.bind("a") == ""
    assert scene.owner == ("robots", "")
    assert usage(scene.cluster.world, "robots") == amounts(onvif=1)


async def test_bind_waits_for_the_group_that_a_claim_is_reserved_for(scene: Scene) -> None:
    """Without the group, its pods are not known, nor whether this is one of them."""
    claim = an_allocated_claim("cam", groups=["train"])
    scene.cluster.store(claim)
    scene.pod("a", claims=["cam"], queue="vision", group="train")

    assert await scene.bind("a") == (
        "ResourceClaim default/cam has no allocation, or is not reserved for Pod default/a."
        " ResourceClaim default/cam is reserved for PodGroup default/train, which is not known: the"
        " cluster must serve podgroups.scheduling.k8s.io (features GenericWorkload and"
        " DRAWorkloadResourceClaims), and --pod-groups list them."
    )

    put(scene.cluster.world, a_group())
    assert await scene.bind("a") == ""
    assert scene.owner == ("vision", pod_uid("a"))


async def test_bind_gives_up_when_claims_never_rest(scene: Scene) -> None:
    scene.sharers(a="vision")

    async def touched() -> None:
        scene.cluster.store(replace(scene.cluster.claims["cam"], other_consumers=1))

    scene.binder.before_write.extend([touched] * ATTEMPTS)

    assert f"during {ATTEMPTS} attempts" in await scene.bind("a")
    assert not scene.binder.bound


def two_claims(scene: Scene, then: Callable[[], None]) -> None:
    """Pod `a` is past PreBind; `then` happens when its first claim has its owner."""
    put(scene.cluster.world, a_queue("vision", onvif=(2, 2)))
    scene.cluster.store(a_claim("one"), a_claim("two"))
    assert scene.extender.filter(scene.pod("a", claims=["one", "two"], queue="vision")) == Passed()
    scene.cluster.reserve("one", "a")
    scene.cluster.reserve("two", "a")

    async def nothing() -> None:
        return

    async def changed() -> None:
        assert scene.cluster.claims["one"].label == "vision"
        scene.cluster.store(replace(scene.cluster.claims["two"], other_consumers=1))
        then()

    scene.binder.before_write.extend([nothing, changed])


async def test_bind_judges_again_when_an_owner_ends_while_another_is_written(
    scene: Scene,
) -> None:
    """The claim that needed no write says no more what was judged; bound, it would say so again."""
    scene.cluster.store(a_claim("one", queue="robots", owner_pod="b"), a_claim("two"))
    scene.pod("b", claims=["one"], queue="robots")
    scene.cluster.reserve("one", "b")
    put(scene.cluster.world, a_queue("vision", onvif=(2, 2)))
    assert scene.extender.filter(scene.pod("a", claims=["one", "two"], queue="vision")) == Passed()
    scene.cluster.reserve("one", "a")
    scene.cluster.reserve("two", "a")

    async def gone() -> None:
        scene.cluster.world.delete_pod(pod_uid("b"))
        scene.cluster.store(replace(scene.cluster.claims["one"], reserved_for=(pod_uid("a"),)))

    scene.binder.before_write.append(gone)

    assert await scene.bind("a") == ""
    assert scene.cluster.claims["one"].label == "vision"
    assert usage(scene.cluster.world, "vision") == amounts(onvif=2)
    assert usage(scene.cluster.world, "robots") == amounts()


@pytest.mark.parametrize("shared", [False, True])
async def test_a_refusal_takes_back_the_owner_that_was_written(scene: Scene, shared: bool) -> None:
    def refuse() -> None:
        put(scene.cluster.world, a_queue("vision", onvif=(1, 1)))
        if shared:
            scene.cluster.reserve("one", "b")

    two_claims(scene, refuse)

    assert (await scene.bind("a")).startswith("OverLimit: ")

    assert scene.cluster.claims["one"].label == ("vision" if shared else "")
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1 if shared else 0)


async def test_owners_are_taken_back_where_the_api_server_goes_away(scene: Scene) -> None:
    two_claims(scene, lambda: setattr(scene.cluster, "is_away", True))

    assert "is not bound yet: the API server is away" in await scene.bind("a")

    assert scene.cluster.claims["one"].label == ""


async def test_a_binding_that_fails_can_take_back_owners_of_every_attempt(scene: Scene) -> None:
    two_claims(scene, lambda: None)

    assert await scene.bind("a") == ""

    assert [claim.name for claim in scene.binder.carried_out if not claim.is_written] == [
        "one",
        "two",
    ]


async def test_a_claim_that_was_made_anew_meanwhile_is_not_bound(scene: Scene) -> None:
    scene.sharers(a="vision")

    async def recreated() -> None:
        del scene.cluster.claims["cam"]
        scene.cluster.store(a_claim(uid="another"))

    scene.binder.before_write.append(recreated)

    assert "is not reserved" in await scene.bind("a")
    assert scene.owner == ("", "")


async def test_a_pod_without_devices_is_bound_without_a_look(scene: Scene) -> None:
    assert scene.extender.filter(scene.pod("plain")) == Passed()

    assert await scene.bind("plain") == ""

    assert scene.cluster.reads == []
    assert scene.binder.bound == {"plain": ("node-a", "")}


async def test_a_pod_without_devices_is_read_where_the_watch_lags(scene: Scene) -> None:
    scene.cluster.lags = True
    scene.pod("plain")

    assert await scene.bind("plain") == ""
    assert scene.cluster.reads == ["pod plain"]


async def test_bind_believes_nothing_that_filter_was_told(scene: Scene) -> None:
    """Whoever reaches the port could say that a pod uses no devices, and of which scheduler."""
    scene.cluster.store(a_claim())
    scene.pod("a", claims=["cam"], queue="nobodys")
    scene.cluster.reserve("cam", "a")
    assert scene.extender.filter(a_pod_object("a")) == Passed()

    assert (await scene.bind("a")).startswith("QueueNotFound: ")
    assert scene.binder.bound == {}


ELSEWHERE = {"schedulerName": "default-scheduler"}
NOT_OURS = (
    'Pod default/a: spec.schedulerName: is "default-scheduler", and this is the scheduler'
    ' "moorage".'
)


@pytest.mark.parametrize("fields", [{}, {"claims": ["cam"], "queue": "vision"}])
@pytest.mark.parametrize("lags", [False, True])
async def test_a_pod_of_another_scheduler_is_not_bound(
    scene: Scene, fields: dict[str, Any], lags: bool
) -> None:
    scene.cluster.store(a_claim())
    scene.cluster.lags = lags
    scene.pod("a", **fields, spec=ELSEWHERE)
    scene.cluster.reserve("cam", "a")
    forged = a_pod_object("a", **fields)
    scene.extender.filter(forged)

    assert await scene.bind("a") == NOT_OURS
    assert scene.binder.bound == {}
    assert scene.owner == ("", "")


def test_a_pod_of_another_scheduler_is_not_judged(scene: Scene) -> None:
    body = scene.pod("a", spec=ELSEWHERE)

    assert scene.extender.filter(body) == NotAnswered(NOT_OURS)
    assert scene.extender.preempt(body) == NotAnswered(NOT_OURS)


async def test_bind_twice_is_bound_once(scene: Scene) -> None:
    scene.sharers(a="vision")

    assert await scene.bind("a") == ""
    assert await scene.bind("a") == ""
    assert await scene.bind("a", "node-b") == "Pod default/a is bound to node-a already."


async def test_bind_of_the_wrong_pod_is_refused(scene: Scene) -> None:
    scene.pod("a", claims=["cam"], queue="vision")
    scene.pod("b", claims=["cam"], queue="vision")

    assert await scene.bind("gone") == "Pod default/gone does not exist."
    assert "created again" in await scene.bind("a", uid="another")
    assert "not to Pod default/a" in await scene.bind("a", uid=pod_uid("b"))


@pytest.mark.parametrize("made_anew", [True, False])
async def test_a_pod_that_came_and_went_unseen_holds_no_room(scene: Scene, made_anew: bool) -> None:
    """A watch that broke shows nothing of it, so no event would end what is assumed of it."""
    scene.cluster.lags = True
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(body) == Passed()
    del scene.cluster.pods["a"]
    if made_anew:
        scene.pod("a", uid="another", requests={"akri.sh/onvif": 1}, queue="vision")

    why = await scene.bind("a")

    assert ("created again" if made_anew else "does not exist") in why
    assert len(scene.cluster.world.assumptions) == 0


async def test_a_binding_that_failed_for_certain_is_forgotten(scene: Scene) -> None:
    scene.sharers(a="vision")
    scene.binder.failures.append(BindFailed("the node is gone", is_certain=True))

    assert await scene.bind("a") == "the node is gone"
    assert len(scene.cluster.world.assumptions) == 0
    assert await scene.bind("a") == ""


async def test_a_pod_whose_bindings_fail_rests_and_its_room_is_for_others(scene: Scene) -> None:
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    scene.binder.failures += [BindFailed("refused", is_certain=True)] * 3
    for _ in range(2):
        assert scene.extender.filter(body) == Passed()
        assert await scene.bind("a") == "refused"

    rests = scene.extender.filter(body)

    assert rests == NotAnswered(
        "Pod default/a is in backoff. Its last 2 bindings failed: it is tried again at"
        " 2026-11-21T12:00:02Z, and others go first."
    )
    other = scene.pod("b", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(other) == Passed()
    scene.cluster.world.assumptions.forget(pod_uid("b"))
    scene.now += timedelta(seconds=2)
    assert scene.extender.filter(body) == Passed()


async def test_a_refusal_at_the_bind_counts_and_a_binding_ends_the_rest(scene: Scene) -> None:
    scene.sharers(a="vision")
    put(scene.cluster.world, a_queue("vision", onvif=(0, 0)))
    for _ in range(2):
        assert (await scene.bind("a")).startswith("OverLimit: ")
    body = a_pod_object("a", claims=["cam"], queue="vision")
    assert isinstance(scene.extender.filter(body), NotAnswered)

    put(scene.cluster.world, a_queue("vision", onvif=(1, 1)))
    scene.now += timedelta(seconds=2)
    assert scene.extender.filter(body) == Passed()
    assert await scene.bind("a") == ""

    assert scene.extender.filter(body) == Passed()


async def test_a_binding_that_may_exist_is_still_believed(scene: Scene) -> None:
    scene.sharers(a="vision")
    scene.binder.failures.append(BindFailed("no answer", is_certain=False))

    assert await scene.bind("a") == "no answer"
    assert len(scene.cluster.world.assumptions) == 1
    assert await scene.bind("a") == ""


async def test_bind_says_that_the_api_server_is_away(scene: Scene) -> None:
    scene.cluster.store(a_claim())
    scene.extender.filter(scene.pod("a", claims=["cam"], queue="vision"))
    scene.cluster.is_away = True

    assert await scene.bind("a") == "Pod default/a is not bound yet: the API server is away"


@pytest.mark.parametrize("is_class_gone", [False, True])
async def test_bind_reads_the_pod_whose_extended_claim_is_not_known(
    scene: Scene, is_class_gone: bool
) -> None:
    """The class may be gone since the claim was made: who uses it is charged all the same."""
    body = scene.pod("a", requests={"akri.sh/onvif": 1}, queue="vision")
    assert scene.extender.filter(body) == Passed()
    if is_class_gone:
        scene.cluster.world.delete_class(ClassName("onvif"))
    made = replace(
        scene.cluster.pods["a"],
        extended_claim="a-extended",
        extended_resources=frozenset({"akri.sh/onvif"}),
    )
    scene.cluster.pods["a"] = made
    scene.cluster.lags = True
    scene.cluster.store(a_claim("a-extended"))
    scene.cluster.reserve("a-extended", "a")

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == ["pod a", "claim a-extended"]
    assert scene.binder.owner_writes == [("a-extended", "vision", pod_uid("a"))]


@pytest.mark.parametrize("watch", ["comes", "lags"])
async def test_bind_waits_for_the_claim_that_was_made_of_a_template(
    scene: Scene, watch: str
) -> None:
    """The watch of pods is behind kube-scheduler's own: what is not known is not judged."""
    entry = {"name": "cam", "resourceClaimTemplateName": "cam"}
    scene.pod("a", resource_claims=[entry], queue="vision")
    scene.cluster.store(a_claim("a-cam-x7k2p"))
    made = [PodClaim("cam", "a-cam-x7k2p", "cam")]
    scene.cluster.pods["a"] = replace(scene.cluster.pods["a"], claims=tuple(made))
    scene.cluster.lags = True
    scene.cluster.reserve("a-cam-x7k2p", "a")
    if watch == "comes":
        asyncio.get_running_loop().call_soon(scene.cluster.catch_up)

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == ([] if watch == "comes" else ["pod a", "claim a-cam-x7k2p"])
    assert scene.binder.owner_writes == [("a-cam-x7k2p", "vision", pod_uid("a"))]


async def test_a_template_of_which_no_claim_is_made_keeps_no_pod(scene: Scene) -> None:
    entry = {"name": "cam", "resourceClaimTemplateName": "cam"}
    needless = {"resourceClaimStatuses": [{"name": "cam"}]}
    scene.pod("a", resource_claims=[entry], queue="vision", status=needless)

    assert await scene.bind("a") == ""
    assert scene.cluster.reads == []


async def test_a_pod_whose_claim_is_still_to_be_made_is_not_bound(scene: Scene) -> None:
    entry = {"name": "cam", "resourceClaimTemplateName": "cam"}
    body = scene.pod("a", resource_claims=[entry], queue="vision")

    answer = scene.extender.filter(body)

    assert isinstance(answer, Refused)
    assert answer.reason is Reason.NOT_KNOWN_YET
    assert (await scene.bind("a")).startswith("NotKnownYet: ")
    assert scene.cluster.reads == ["pod a"]


async def test_a_claim_that_is_not_there_at_the_bind_is_a_reason_of_its_own(scene: Scene) -> None:
    scene.pod("a", claims=["cam"], queue="vision")

    assert await scene.bind("a") == (
        "ClaimNotFound: ResourceClaim default/cam, which Pod default/a names, does not exist."
    )


def late_claim(scene: Scene) -> dict[str, Any]:
    """Pod `a` names a claim that kube-scheduler knows and the watch has not brought."""
    body = scene.pod("a", claims=["cam"], queue="vision")
    scene.cluster.lags = True
    scene.cluster.store(a_claim(queue="vision", requests=[a_request(count=2)]))
    return body


async def test_a_claim_that_the_watch_brings_in_a_moment_is_judged_then(scene: Scene) -> None:
    body = late_claim(scene)
    asyncio.get_running_loop().call_soon(scene.cluster.catch_up)

    answer = await scene.extender.filter_once_known(body)

    assert isinstance(answer, Refused)
    assert answer.reason is Reason.OVER_LIMIT
    assert scene.cluster.reads == []


async def test_a_claim_that_is_not_known_costs_no_nothing(scene: Scene) -> None:
    body = late_claim(scene)

    answer = await scene.extender.filter_once_known(body)

    sentence = "ResourceClaim default/cam, which Pod default/a names, is not known yet."
    assert answer == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert scene.extender.preempt(body) == answer
    assert len(scene.cluster.world.assumptions) == 0
    assert len(scene.extender.refusals) == 1
    async with running(scene.extender.lookups.run()):
        await scene.cluster.has_read.wait()
    answer = await scene.extender.filter_once_known(body)
    assert isinstance(answer, Refused)
    assert answer.reason is Reason.OVER_LIMIT


async def test_a_claim_that_is_known_to_be_gone_is_said_to_be(scene: Scene) -> None:
    body = late_claim(scene)
    del scene.cluster.claims["cam"]
    assert isinstance(await scene.extender.filter_once_known(body), Refused)
    async with running(scene.extender.lookups.run()):
        await scene.cluster.has_read.wait()

    answer = await scene.extender.filter_once_known(body)

    sentence = "ResourceClaim default/cam, which Pod default/a names, does not exist."
    assert answer == Refused(Reason.CLAIM_NOT_FOUND, sentence)
    put(scene.cluster.world, a_claim())
    assert await scene.extender.filter_once_known(body) == Passed()


def tried_before(scene: Scene, name: str) -> dict[str, Any]:
    """kube-scheduler deletes the claim that it made when a Bind fails; the pod still names it."""
    mapping = {"containerName": "main", "resourceName": "akri.sh/onvif", "requestName": "req"}
    left = {"resourceClaimName": f"{name}-old", "requestMappings": [mapping]}
    status = {"extendedResourceClaimStatus": left}
    return scene.pod(name, requests={"akri.sh/onvif": 1}, queue="vision", status=status)


@pytest.mark.parametrize("verb", ["filter", "preempt"])
def test_what_an_earlier_attempt_left_on_a_pod_covers_nothing(scene: Scene, verb: str) -> None:
    assert scene.extender.filter(tried_before(scene, "a")) == Passed()

    answer = getattr(scene.extender, verb)(tried_before(scene, "b"))

    assert isinstance(answer, Refused)
    assert answer.reason is Reason.OVER_LIMIT


async def test_bind_waits_for_the_claim_of_this_attempt(scene: Scene) -> None:
    assert scene.extender.filter(tried_before(scene, "a")) == Passed()
    made = replace(scene.cluster.pods["a"], extended_claim="a-new")
    scene.cluster.store(a_claim("a-new"))
    scene.cluster.reserve("a-new", "a")
    scene.cluster.pods["a"] = made
    asyncio.get_running_loop().call_soon(scene.cluster.catch_up)

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == []
    assert scene.binder.owner_writes == [("a-new", "vision", pod_uid("a"))]


async def test_a_device_plugin_may_serve_what_a_claim_was_made_for_before(scene: Scene) -> None:
    assert scene.extender.filter(tried_before(scene, "a")) == Passed()

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == ["pod a", "claim a-old"]
    assert usage(scene.cluster.world, "vision") == amounts(onvif=1)
    assert isinstance(scene.extender.filter(tried_before(scene, "b")), Refused)


async def test_claims_that_nobody_counts_are_left_alone(scene: Scene) -> None:
    put(scene.cluster.world, their_class("gpu", 'device.driver == "gpu.example.com"'))
    scene.cluster.store(a_claim("card", requests=[a_request("gpu")]))
    assert scene.extender.filter(scene.pod("a", claims=["card"])) == Passed()

    assert await scene.bind("a") == ""

    assert scene.cluster.reads == []
    assert scene.binder.owner_writes == []
    assert scene.binder.bound == {"a": ("node-a", "")}


async def test_who_reserved_a_claim_is_bound_though_another_was_admitted_before(
    scene: Scene,
) -> None:
    """The other did not get as far as its reservation: pods of two nodes take turns for ever."""
    scene.cluster.store(a_claim())
    for name, queue in (("a", "vision"), ("b", "robots")):
        passed = scene.extender.filter(scene.pod(name, claims=["cam"], queue=queue))
        assert passed == Passed()
    scene.cluster.reserve("cam", "b")

    assert await scene.bind("b") == ""

    assert scene.owner == ("robots", pod_uid("b"))


# What is held for others.


def held_for_another(scene: Scene) -> dict[str, Any]:
    """Node n has one device, which is held for somebody; pod `a` asks for one."""
    scene.cluster.inventory.nodes.put_node(node_view(a_ready_node()))
    slice_object = {"metadata": {"name": "all"}, **a_slice_object("d1")}
    scene.cluster.inventory.devices.put_slice(published_slice(slice_object))
    other = QueueName("robots")
    device = DeviceId("moorage.dev", "n", "d1")
    hold = Hold(pod_uid("w"), "Pod default/w", other, amounts(onvif=1), NO_CHARGES)
    scene.cluster.world.hold(replace(hold, is_device=True, devices=((device, 1),), node="n"))
    scene.cluster.store(a_claim())
    return scene.pod("a", claims=["cam"], queue="vision")


def test_filter_keeps_a_pod_off_a_node_whose_only_free_device_is_held(scene: Scene) -> None:
    body = held_for_another(scene)

    answer = scene.extender.filter(body)

    assert isinstance(answer, Passed)
    assert set(answer.kept_off) == {"n"}
    assert "is held for Pod default/w" in answer.kept_off["n"]


def test_a_pod_that_is_kept_off_every_node_leaves_its_room_to_others(scene: Scene) -> None:
    body = held_for_another(scene)
    scene.extender.filter(body)
    assert scene.cluster.world.assumptions.is_assumed(pod_uid("a"))

    scene.extender.kept_off(pod_uid("a"), everywhere=True)

    assert not scene.cluster.world.assumptions.is_assumed(pod_uid("a"))
    assert pod_uid("a") in scene.extender.refusals


def test_a_pod_that_is_kept_off_every_node_once_more_is_refused_all_the_while(scene: Scene) -> None:
    """Else it would be tried again at once, again and again."""
    body = held_for_another(scene)
    heard: list[bool] = []
    refusals = scene.extender.refusals
    refusals.changed = lambda uid: heard.append(uid in refusals)
    for _ in range(3):
        scene.extender.filter(body)
        scene.extender.kept_off(pod_uid("a"), everywhere=True)

    assert heard == [True, True, True]


def test_a_pod_that_is_kept_off_some_nodes_is_on_its_way(scene: Scene) -> None:
    body = held_for_another(scene)
    scene.extender.refusals.answered(pod_uid("a"), refused=True)
    scene.extender.filter(body)

    scene.extender.kept_off(pod_uid("a"), everywhere=False)

    assert scene.cluster.world.assumptions.is_assumed(pod_uid("a"))
    assert pod_uid("a") not in scene.extender.refusals


async def test_bind_refuses_a_pod_that_was_given_what_is_held(scene: Scene) -> None:
    body = held_for_another(scene)
    scene.extender.filter(body)
    given = a_result(pool="n", device="d1")
    scene.cluster.store(an_allocated_claim("cam", "a", results=[given]))

    answer = await scene.bind("a")

    assert answer.startswith("DeviceHeld: device moorage.dev/n/d1 is held for Pod default/w")
    assert scene.owner == ("", "")
