"""A ledger that followed any history equals one that is built from the objects as they are.

Three ledgers are compared: the one that followed, one that was fed the present objects in another
order, and the plain sum that the design tells, written here without an index or an increment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.assumptions import Assumptions
from scheduler_plugin.accounting.charges.costs import granted_cost
from scheduler_plugin.accounting.charges.ledger import Ledger
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges, summed
from scheduler_plugin.objects.claims import ClaimView, ClassName, GroupConsumer, Result
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.objects.names import AccountingSettings, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import (
    NOW,
    a_choice,
    a_claim,
    a_class,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice,
    our_class,
    their_class,
)

REMEMBERED = {
    "._deleted",
    "._facts._gone_claims",
    "._facts.catalog._left",
    "._facts.pod_queues._gone",
    "._ledger._touched",
    "._facts.tree._paths",
}
"""What a world keeps of objects that are gone, on purpose: what was deleted and is to be told."""

SETTINGS = AccountingSettings(default_queue=QueueName("q0"))

queues = st.sampled_from(["q0", "q1", "q2", "q3"])
parents = st.sampled_from(["", "q0", "q1", "q2", "q3", "missing"])
MIRRORS = ("p2", "p3")
pod_names = st.sampled_from(["p0", "p1", "p2", "p3"])
claim_names = st.sampled_from(["c0", "c1", "c2"])
namespaces = st.sampled_from(["n0", "n1"])
group_names = st.sampled_from(["g0", "g1"])
some_groups = st.lists(st.tuples(group_names, st.integers(0, 1)), unique=True, max_size=2)
seldom = st.sampled_from([False, False, False, False, True])
some_pods = st.lists(pod_names, unique=True, max_size=4)

REQUESTS: list[list[dict[str, Any]]] = [
    [a_request()],
    [a_request(count=2, slots="3"), a_request("gpu", name="other")],
    [a_request(allocationMode="All")],
    [a_request("onvif-8120fe")],
    [a_choice(a_request(name="one"), a_request("gpu", name="two", count=2))],
    [a_request("theirs"), a_request("gpu", name="other")],
]
RESULTS: list[list[dict[str, Any]]] = [
    [a_result()],
    [a_result(slots="2"), a_result("other", driver="gpu.example.com")],
    [a_result("req/two", driver="gpu.example.com"), a_result("req/one", adminAccess=True)],
    [a_result(pool="shared/udev"), a_result("other", device="onvif-1", slots="2")],
    [a_result(device="onvif-1"), a_result("other", device="onvif-8120fe", slots="2")],
]
SELECTORS = (
    'device.driver == "moorage.dev"',
    'device.attributes["moorage.dev"].configuration == "udev"',
    'device.driver == "gpu.example.com"',
    "true",
)


def plain_usage(world: World, *, non_preemptible: bool) -> dict[QueueName, Charges]:
    """What `docs/design/owners.md` says, by going through everything."""
    facts = world.facts
    parts: dict[QueueName, list[Charges]] = {}

    def charge(queue: QueueName, amount: Charges) -> None:
        for place in facts.tree.path(queue):
            parts.setdefault(place, []).append(amount)

    pods = {pod.uid: pod for pod in facts.pods()}
    for claim in facts.claims():
        consumers = plain_consumers(claim, world)
        unsafe = [p for p in consumers if p.non_preemptible and not p.ended]
        unsafe_queues = [facts.queue_of(p) for p in unsafe]
        owner = claim.label
        counts = owner in unsafe_queues if non_preemptible else bool(owner)
        if owner and counts and has_owner(claim, consumers, world):
            charge(owner, plain_cost(claim, world))
    for pod, cost in plain_pod_costs(pods.values(), world):
        queue = facts.queue_of(pod)
        if not pod.queue_is_bound and not facts.may_use(pod, queue):
            continue
        if queue and pod.node and not pod.ended and (pod.non_preemptible or not non_preemptible):
            charge(queue, cost)
    sums = {queue: summed(found) for queue, found in parts.items()}
    return {queue: found for queue, found in sorted(sums.items()) if found}


def plain_unattributed(world: World) -> Charges:
    """What is in use and charged to no queue."""
    facts, found = world.facts, []
    pods = {pod.uid: pod for pod in facts.pods()}
    for claim in facts.claims():
        consumers = plain_consumers(claim, world)
        is_owned = bool(claim.label) and has_owner(claim, consumers, world)
        if claim.results is not None and not is_owned and any(pod.node for pod in consumers):
            found.append(plain_cost(claim, world))
    for pod, cost in plain_pod_costs(pods.values(), world):
        queue = facts.queue_of(pod)
        is_charged = bool(queue) and (pod.queue_is_bound or facts.may_use(pod, queue))
        if pod.node and not pod.ended and not is_charged:
            found.append(cost)
    return summed(found)


def plain_pod_costs(pods: Iterable[PodView], world: World) -> Iterator[tuple[PodView, Charges]]:
    for pod in pods:
        yield pod, plain_pod_cost(pod, world)


def plain_pod_cost(pod: PodView, world: World) -> Charges:
    is_covered = world.facts.claim_named(pod.namespace, pod.extended_claim) is not None
    asks = pod if is_covered else replace(pod, extended_resources=frozenset())
    return granted_cost(asks, world.facts.catalog)


def plain_consumers(claim: ClaimView, world: World) -> list[PodView]:
    """The pods of a claim's own entries, and those that use it through a known PodGroup."""
    pods = {pod.uid: pod for pod in world.facts.pods()}
    own = [uid for uid in claim.reserved_for if uid not in claim.group_users]
    users = (pod for pod in plain_members(claim, world) if pod.node and not pod.ended)
    every = dict.fromkeys([*own, *(pod.uid for pod in users)])
    return [pods[uid] for uid in every if uid in pods]


def plain_members(claim: ClaimView, world: World) -> list[PodView]:
    """The pods of PodGroups that the claim is reserved for, which are known and have the UID."""
    groups = plain_groups(claim, world)
    naming = (p for p in world.facts.pods() if claim.name in p.claim_names)
    return [pod for pod in naming if (pod.scheduling_group, True) in groups]


def plain_groups(claim: ClaimView, world: World) -> set[tuple[str, bool | None]]:
    """The PodGroups of a claim by name: whether they are known and have the UID; None: unknown."""
    queues, found = world.facts.pod_queues, set[tuple[str, bool | None]]()
    for group in (*claim.groups, *claim.unknown_groups):
        known = queues.own_group("n0", group.name)
        stands = known.uid == group.uid if known else None
        is_gone = known is None and queues.is_gone_group("n0", group.name)
        found.add((group.name, False if is_gone else stands))
    return found


def has_owner(claim: ClaimView, consumers: list[PodView], world: World) -> bool:
    if claim.results is None:
        return False
    if not claim.owner_pod or claim.owner_pod in {pod.uid for pod in consumers}:
        return True
    if claim.owner_pod in claim.reserved_for and claim.owner_pod not in claim.group_users:
        return True
    return bool(plain_groups(claim, world)) or any(pod.node for pod in consumers)


def plain_key(name: ClassName, result: Result, world: World) -> ResourceKey | None:
    """What a device is charged as: one of ours as its Configuration, or what else is known."""
    catalog = world.facts.catalog
    if result.driver != "moorage.dev":
        return catalog.accounted_key(name)
    shown = [
        attributes[1]
        for view in map(catalog.slice_named, ("s0", "s1"))
        for attributes in (view.configurations if view else ())
        if attributes[0] == result.device_id
    ]
    instance = catalog.instance_named(result.device)
    told = [instance.configuration] if instance else [catalog.key(name)]
    if result.pool == "shared/udev":
        told = [ResourceKey("udev")]
    key = min(shown or told)
    for asked in (name, ClassName(key)):
        found = catalog.class_named(asked)
        if found is not None and (found.accounted is not None or found.configuration):
            return None if found.accounted is False else key
    return key


def plain_cost(claim: ClaimView, world: World) -> Charges:
    total: dict[ResourceKey, int] = {}
    for result in claim.results or ():
        for request in claim.requests:
            for alternative in request.alternatives:
                key = plain_key(alternative.device_class, result, world)
                if alternative.name == result.request and key and not result.admin_access:
                    counted = result.slots if result.driver == "moorage.dev" else None
                    total[key] = total.get(key, 0) + (1 if counted is None else counted)
    return charges(total)


T = TypeVar("T")


def feed(put: Callable[[T], object], objects: Iterable[T]) -> None:
    for found in reversed(list(objects)):
        put(found)


def assumed(assumptions: Assumptions) -> list[Any]:
    return [assumptions.usage.by_queue(), assumptions.non_preemptible.by_queue()]


ASKED_BY_POD: list[dict[str, Any]] = [
    {},
    {"akri.sh/onvif": "2"},
    {"akri.sh/onvif-8120fe": "1"},
    {"example.com/gpu": 1},
]


class Histories(RuleBasedStateMachine):
    """Objects come, change and go in any order; deleted ones come back with another UID."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(SETTINGS)
        self.now = NOW
        self.births: dict[str, int] = {}
        self.classes: dict[str, ClassView] = {}
        self.slices: dict[str, SliceView] = {}
        self.groups: dict[str, PodGroupView] = {}
        self.own_groups: dict[str, PodGroupView] = {}
        self.instances: dict[str, InstanceView] = {}
        self.configurations = 0

    @initialize()
    def begin(self) -> None:
        """A chain of queues, pods that wait for every claim, and a class of Moorage's."""
        self.classes["onvif"] = our_class()
        self.world.put_class(self.classes["onvif"])
        for name, parent in (("q0", {}), ("q1", {"parent": "q0"}), ("q2", {"parent": "q1"})):
            self.world.put_queue(a_queue(name, **parent, onvif=(9, 9)))
        self.groups["group"] = PodGroupView("n0", "group", QueueName("q2"))
        self.world.put_group(self.groups["group"])
        self.change_own_group("g0", 0)
        self.world.put_namespace(NamespaceView("n0", {}))
        for number, queue in enumerate(("q0", "q1", "", "q0")):
            traits = (False, False, not queue)
            self.put_pod(f"p{number}", queue, False, traits, ["c1"], {}, None, False, "g0")
        self.put_claim("c0", "q0", "", REQUESTS[0], RESULTS[0], ["p0", "p1", "p3"], False, [])
        self.put_claim("c1", "", "", REQUESTS[2], None, [], False, [])

    def pod_uid(self, name: str) -> PodUid:
        return PodUid(f"{name}-{self.births.get(name, 0)}")

    def claim_uid(self, name: str) -> ClaimUid:
        return ClaimUid(f"{name}-{self.births.get(name, 0)}")

    def bear(self, name: str) -> None:
        """From now on the name is another object's."""
        self.births[name] = self.births.get(name, 0) + 1

    @rule(name=queues, parent=parents, gpu=st.booleans(), closed=seldom)
    def put_queue(self, name: str, parent: str, gpu: bool, closed: bool) -> None:
        listed: dict[str, Any] = {"gpu": (1, 2)} if gpu else {}
        listed |= {"namespaceSelector": None} if closed else {}
        wanted = {} if parent in ("", name) else {"parent": parent}
        self.world.put_queue(a_queue(name, **wanted, **listed))

    @rule(name=queues)
    def delete_queue(self, name: str) -> None:
        self.world.delete_queue(QueueName(name))

    @rule(
        name=pod_names,
        queue=st.sampled_from(["", "", "", "q0", "q0", "q1", "gone"]),
        node=seldom,
        traits=st.tuples(st.booleans(), seldom, st.booleans()),
        claims=st.lists(claim_names, unique=True),
        requests=st.sampled_from(ASKED_BY_POD),
        covered=st.sampled_from([None, None, ("c0", "akri.sh/onvif"), ("c1", "akri.sh/onvif")]),
        renew=seldom,
        group=st.sampled_from(["", "g0", "g0", "g1"]),
    )
    def put_pod(
        self,
        name: str,
        queue: str,
        node: bool,
        traits: tuple[bool, bool, bool],
        claims: list[str],
        requests: dict[str, Any],
        covered: tuple[str, str] | None,
        renew: bool,
        group: str,
    ) -> None:
        """Of those that a claim covers, or covered before it was deleted, some as well."""
        non_preemptible, ended, grouped = traits
        if renew:
            self.bear(name)
        annotations = {"pod-group-name": "group"} if grouped else {}
        annotations |= {"kubernetes.io/config.mirror": "hash"} if name in MIRRORS else {}
        pod = a_pod(
            name,
            SETTINGS,
            namespace="n0",
            uid=self.pod_uid(name),
            queue=queue,
            node="node-a" if node else "",
            non_preemptible=non_preemptible,
            phase="Succeeded" if ended else "Running",
            claims=claims,
            requests=requests,
            annotations=annotations,
            unjudged=name in MIRRORS,
            group=group,
        )
        if covered is not None:
            claim, resource = covered
            stands_for = frozenset([resource])
            pod = replace(pod, extended_claim=claim, extended_resources=stands_for)
        self.world.put_pod(pod)
        self.world.put_pod(pod)

    @rule(name=pod_names)
    def delete_pod(self, name: str) -> None:
        found = self.world.facts.pod_named("n0", name)
        if found is not None:
            self.world.delete_pod(found.uid)
            self.world.delete_pod(found.uid)
            self.bear(name)

    @rule(
        name=claim_names,
        label=st.sampled_from(["", "", "q0", "q0", "q1", "gone"]),
        owner=st.sampled_from(["", "", "", "p0", "p1"]),
        requests=st.sampled_from(REQUESTS),
        results=st.sampled_from([None, *RESULTS]),
        pods=some_pods,
        renew=seldom,
        groups=st.one_of(st.just([]), some_groups),
    )
    def put_claim(
        self,
        name: str,
        label: str,
        owner: str,
        requests: list[Any],
        results: list[Any] | None,
        pods: list[str],
        renew: bool,
        groups: list[tuple[str, int]],
    ) -> None:
        if renew:
            self.bear(name)
        uids = {"p0": self.pod_uid("p0"), "p1": self.pod_uid("p1")}
        claim = replace(
            a_claim(name, namespace="n0", requests=requests, results=results, queue=label),
            uid=self.claim_uid(name),
            owner_pod=uids.get(owner, PodUid("")),
            reserved_for=tuple(self.pod_uid(pod) for pod in pods),
            groups=tuple(GroupConsumer(group, str(number)) for group, number in groups),
        )
        self.world.put_claim(claim)
        self.world.put_claim(claim)

    @rule(name=claim_names, label=st.sampled_from(["", "q0", "q1", "q2", "gone"]))
    def edit_label(self, name: str, label: str) -> None:
        """What no policy lets happen."""
        found = self.world.facts.claim_named("n0", name)
        if found is not None:
            self.world.put_claim(replace(found, label=QueueName(label)))

    @rule(name=claim_names)
    def delete_claim(self, name: str) -> None:
        found = self.world.facts.claim_named("n0", name)
        if found is not None:
            self.world.delete_claim(found.uid)
            self.world.delete_claim(found.uid)
            self.bear(name)

    @rule(change=st.sampled_from(["put", "put", "delete"]), what=st.data())
    def change_class(self, change: str, what: st.DataObject) -> None:
        name = what.draw(st.sampled_from(["onvif", "gpu", "onvif-8120fe", "theirs"]))
        if change == "delete":
            found = self.classes.pop(name, None)
            self.world.delete_class(found.name if found else ClassName(name))
            return
        labels = {"moorage.dev/accounted": what.draw(st.sampled_from(["", "", "true", "false"]))}
        spec = {"extendedResourceName": f"example.com/{name}"}
        if name == "theirs":
            selector = what.draw(st.sampled_from(SELECTORS))
            self.classes[name] = their_class(name, selector, labels=labels, spec=spec)
        elif name == "onvif-8120fe":
            self.classes[name] = our_class(name, labels=labels, configuration="onvif")
        elif what.draw(st.booleans()):
            self.classes[name] = our_class(name, labels=labels)
        else:
            self.classes[name] = a_class(name, labels=labels, spec=spec)
        self.world.put_class(self.classes[name])

    @rule(
        name=st.sampled_from(["s0", "s1"]),
        count=st.integers(0, 3),
        node=st.booleans(),
        of=st.sampled_from(["onvif", "udev"]),
    )
    def change_slice(self, name: str, count: int, node: bool, of: str) -> None:
        if not count:
            self.slices.pop(name, None)
            self.world.delete_slice(name)
            return
        devices = [(of, f"onvif-{number}") for number in range(count)]
        devices[:1] = [("onvif", "onvif-8120fe")]
        place = {"nodeName": name} if node else {"allNodes": True}
        self.slices[name] = a_slice(name, *devices, **place)
        self.world.put_slice(self.slices[name])

    @rule(queue=st.sampled_from([None, "", "q1", "q2"]))
    def change_namespace(self, queue: str | None) -> None:
        if queue is None:
            self.world.delete_namespace("n0")
        else:
            self.world.put_namespace(NamespaceView("n0", {"moorage.dev/queue": queue}))

    @rule(queue=st.sampled_from([None, "", "q2", "q3"]))
    def change_group(self, queue: str | None) -> None:
        if queue is None:
            self.groups.pop("group", None)
            self.world.delete_group("n0", "group")
        else:
            self.groups["group"] = PodGroupView("n0", "group", QueueName(queue))
            self.world.put_group(self.groups["group"])

    @rule(name=group_names, number=st.sampled_from([None, 0, 0, 0, 1]))
    def change_own_group(self, name: str, number: int | None) -> None:
        """A PodGroup for which claims may be reserved; a new one has another UID."""
        if number is None:
            self.own_groups.pop(name, None)
            self.world.delete_group("n0", name)
            return
        kind = "scheduling.k8s.io/v1alpha2"
        found = PodGroupView("n0", name, QueueName("q1"), uid=str(number), api_version=kind)
        self.own_groups[name] = found
        self.world.put_group(found)

    @rule(more=st.booleans(), instance=st.booleans())
    def change_legacy_names(self, more: bool, instance: bool) -> None:
        found = InstanceView("onvif-8120fe", ResourceKey("onvif"), ("node-a",), 1)
        if instance and more:
            self.instances[found.name] = found
            self.world.put_instance(found)
        elif instance:
            self.instances.clear()
            self.world.delete_instance(found.name)
        elif more:
            self.configurations += 1
            self.world.put_configuration(ResourceKey("onvif"))
        elif self.configurations:
            self.configurations -= 1
            self.world.delete_configuration(ResourceKey("onvif"))

    @rule(name=pod_names, seconds=st.integers(0, 40))
    def decide(self, name: str, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        pod = self.world.facts.pod_named("n0", name)
        if pod is None or pod.is_bound:
            return
        self.world.assumptions.expire(self.now)
        found = judge(pod, self.world.facts.claims_of(pod), self.world)
        if isinstance(found, Admitted):
            assume(pod, found, self.world, self.now)

    @rule(name=pod_names)
    def forget(self, name: str) -> None:
        pod = self.world.facts.pod_named("n0", name)
        if pod is not None:
            self.world.assumptions.forget(pod.uid)

    def rebuilt(self) -> World:
        """A world that is fed the objects as they are, each kind in another order."""
        facts, world = self.world.facts, World(SETTINGS)
        for _ in range(self.configurations):
            world.put_configuration(ResourceKey("onvif"))
        feed(world.put_claim, facts.claims())
        feed(world.put_pod, facts.pods())
        feed(world.put_namespace, facts.namespaces.values())
        for name in ("g0", "g1"):
            # Whether a PodGroup was deleted or is not known yet is no matter of its objects.
            if facts.pod_queues.is_gone_group("n0", name):
                world.put_group(PodGroupView("n0", name, QueueName("")))
                world.delete_group("n0", name)
        feed(world.put_group, self.groups.values())
        feed(world.put_group, self.own_groups.values())
        feed(world.put_queue, facts.tree)
        feed(world.put_slice, self.slices.values())
        feed(world.put_class, self.classes.values())
        feed(world.put_instance, self.instances.values())
        return world

    @invariant()
    def following_equals_rebuilding(self) -> None:
        ledger, anew = self.world.ledger, self.rebuilt().ledger

        assert ledger.by_queue() == anew.by_queue()
        assert ledger.orphans() == anew.orphans()
        for queue in self.world.facts.tree:
            assert ledger.unattributed_of(queue.name) == anew.unattributed_of(queue.name)

    @invariant()
    def the_ledger_is_the_plain_sum(self) -> None:
        ledger: Ledger = self.world.ledger

        assert ledger.usage.by_queue() == plain_usage(self.world, non_preemptible=False)
        assert ledger.non_preemptible.by_queue() == plain_usage(self.world, non_preemptible=True)
        assert ledger.unattributed() == plain_unattributed(self.world)

    @invariant()
    def assumptions_are_the_sum_of_their_parts(self) -> None:
        assumptions = deepcopy(self.world.assumptions)
        before = assumed(assumptions)
        for claim in self.world.facts.claims():
            assumptions.recount(claim.uid)
        assert assumed(assumptions) == before

        assumptions.expire(self.now + timedelta(days=1))
        assert len(assumptions) or assumed(assumptions) == [{}, {}]

    def teardown(self) -> None:
        """When everything is gone, nothing is charged, and no index remembers anything."""
        facts = self.world.facts
        for pod in list(facts.pods()):
            self.world.delete_pod(pod.uid)
        for claim in list(facts.claims()):
            self.world.delete_claim(claim.uid)

        assert self.world.ledger.by_queue() == {}
        assert not self.world.ledger.unattributed()
        assert len(self.world.assumptions) == 0
        assert assumed(self.world.assumptions) == [{}, {}]
        grown = kept_in(self.world).keys() - kept_in(self.rebuilt()).keys()
        assert grown <= REMEMBERED, grown - REMEMBERED


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
