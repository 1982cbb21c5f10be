"""Reclaim of devices over histories: nodes with CPU, devices of two models and one that is shared.

A claim is for one device, for two, for two of the same model, or for all of a node's.

The checker knows the rules as the documentation says them, and a cluster of its own in plain
objects. It never asks the product what would serve or who may go:

- nobody non-preemptible is evicted, and of a claim that is taken all users are;
- no queue is taken below its quota, and nobody gets by it more than its own;
- nobody is evicted while a device that would do is free, and nobody who could have stayed;
- who was evicted for a pod leaves it a device that the pod then gets, if its node still has the
  CPU and the quota of a non-preemptible one was not lowered meanwhile: nobody else slips in,
  whoever leads, and however long the evicted take;
- a leader that dies between two evictions leaves nothing that the next does not finish or give up;
- whoever was evicted for a pod does not come back and take it from that, while quotas last;
- with constant demand (whoever is evicted comes back and waits) evictions end;
- then whoever waits within the quota is told why, and there is no claim that alone could go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging import verdicts
from scheduler_plugin.judging.verdicts import Admitted, Verdict, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.pods import PodView, pod_view
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.places.places import Places
from scheduler_plugin.reclaiming.victims import victims
from scheduler_plugin.reclaiming.victims.candidates import Candidates
from scheduler_plugin.reclaiming.wants import Nobody, hold_of
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_slice,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    Cluster,
    a_device,
    a_node_object,
    a_slice_object,
    device,
)
from tests.scheduler_plugin.reclaiming.histories import FOUND

PARENTS = {"root": "", "a": "root", "b": "root", "a1": "a", "a2": "a"}
LEAVES = ("a1", "a2", "b")
NODES = ("n", "m")
CPU = 4
MOST_ROUNDS = 60
KEY = ResourceKey("onvif")
TRIED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
HELD = {"type": "moorage.dev/Reclaiming", "status": "True", "reason": "DeviceReclaimed"}


def path(queue: str) -> list[str]:
    return [queue, *path(PARENTS[queue])] if PARENTS[queue] else [queue]


@dataclass
class User:
    """A pod of the model; it asks for CPU, and maybe for a node. Its origin it keeps for ever."""

    name: str
    queue: str
    claim: str
    priority: int
    non_preemptible: bool
    cpu: int
    wants_node: str
    origin: str
    node: str = ""
    going: bool = False
    tried: bool = False
    held: bool = False
    in_vain: bool = False


@dataclass(frozen=True)
class Device:
    """A device of one node; one without slots is for one claim."""

    name: str
    node: str
    model: str
    slots: int | None = None


@dataclass
class Held:
    """A claim: which model, how many devices and slots (None: of any device); and what it has."""

    name: str
    model: str
    slots: int | None = None
    count: int = 1
    agree: bool = False
    all: bool = False
    owner: str = ""
    devices: tuple[Device, ...] = ()

    @property
    def of_each(self) -> int:
        return self.slots or 1

    @property
    def cost(self) -> int:
        """Before it has any, the most that it can be."""
        most = MOST_OF_A_NODE if self.all else self.count
        return self.of_each * (len(self.devices) or most)


WANTS: tuple[dict[str, Any], ...] = (
    *({}, {}, {}, {"slots": 2}),
    *({"count": 2}, {"count": 2, "agree": True}, {"count": 2, "agree": True}),
    *({"all": True}, {"all": True}),
)
DEVICES = (
    Device("d1", "n", "plain"),
    Device("d2", "n", "fine"),
    Device("d3", "m", "plain"),
    Device("d4", "m", "plain", slots=3),
    Device("d5", "n", "plain"),
)
MOST_OF_A_NODE = 3


@dataclass
class Model:
    """Who uses what."""

    quotas: dict[str, int] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    claims: dict[str, Held] = field(default_factory=dict)

    def users_of(self, claim: str) -> list[User]:
        return [user for user in self.users.values() if user.claim == claim and user.node]

    def lasts(self, claim: Held, gone: Collection[str] | None) -> bool:
        """Whether a claim has users once these are gone, and those on their way out."""
        users = self.users_of(claim.name)
        return any(gone is None or (u.name not in gone and not u.going) for u in users)

    def usage(self, queue: str, gone: Collection[str] = ()) -> int:
        claims = [c for c in self.claims.values() if c.owner and queue in path(c.owner)]
        return sum(claim.cost for claim in claims if self.lasts(claim, gone))

    def has_room(self, one: Device, claim: Held, gone: Collection[str] | None) -> bool:
        held = [c for c in self.claims.values() if one in c.devices and self.lasts(c, gone)]
        if one.slots is None:
            return not held and claim.slots is None
        return sum(c.of_each for c in held) + claim.of_each <= one.slots

    def has_cpu(self, node: str, user: User, gone: Collection[str] | None) -> bool:
        there = [u for u in self.users.values() if u.node == node]
        stay = [u for u in there if gone is None or (u.name not in gone and not u.going)]
        return sum(u.cpu for u in stay) + user.cpu <= CPU

    def places(
        self, user: User, gone: Collection[str] | None, among: Collection[Device] = DEVICES
    ) -> Iterator[tuple[Device, ...]]:
        """What would do for a pod once these are gone; None for as it is now."""
        claim = self.claims[user.claim]
        for node in NODES if not user.wants_node else (user.wants_node,):
            if self.has_cpu(node, user, gone):
                there = [d for d in DEVICES if d.node == node and claim.model in ("", d.model)]
                free = [d for d in there if d in among and self.has_room(d, claim, gone)]
                yield from _sets(claim, there, free)

    def payer(self, user: User) -> str:
        return self.claims[user.claim].owner or user.queue

    def quota_allows(self, user: User) -> bool:
        """Whether what is non-preemptible stays within each quota above with this pod."""
        firm = {u.claim for u in self.users.values() if u.node and u.non_preemptible}
        cost = self.claims[user.claim].cost
        places = path(self.payer(user)) if user.non_preemptible else ()
        return all(
            cost
            + sum(c.cost for c in self.claims.values() if c.name in firm and q in path(c.owner))
            <= self.quotas[q]
            for q in places
        )


def _sets(claim: Held, there: list[Device], free: list[Device]) -> Iterator[tuple[Device, ...]]:
    """Of those that are free on a node: any, any that agree, or all; shared ones may be full."""
    if claim.all:
        if free and all(one in free or one.slots is not None for one in there):
            yield tuple(free)
        return
    for devices in combinations(free, claim.count):
        if not claim.agree or len({one.model for one in devices}) == 1:
            yield devices


class DeviceReclaims(RuleBasedStateMachine):
    """One cluster; kube-scheduler and kubelet do at once what they are let to."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.world: World = a_world()
        self.count = 0
        # By waiting pod: the devices that are to be its, and who was evicted for that.
        self.promises: dict[str, tuple[frozenset[Device], set[str]]] = {}
        self.was_promised: dict[str, frozenset[Device]] = {}
        # Who went, charged to which queue, for whom, to be charged to which.
        self.lost: set[tuple[str, str, str, str]] = set()
        self._show_devices()

    @initialize(
        quotas=st.fixed_dictionaries({name: st.integers(0, 3) for name in PARENTS}),
        there=st.lists(st.sampled_from((*LEAVES, "b", "b", "b")), min_size=6, max_size=8),
    )
    def begin(self, quotas: dict[str, int], there: list[str]) -> None:
        self.model.quotas = {**quotas, "root": 9, "a": 1 + quotas["a"], "b": quotas["b"] // 2}
        self._show_queues()
        for queue in there:
            self._come(queue)
        self.schedule()

    # What people and the cluster do.

    @rule(
        queue=st.sampled_from(LEAVES),
        model=st.sampled_from(["", "", "plain", "fine"]),
        wants=st.sampled_from(WANTS),
        priority=st.integers(0, 2),
        non_preemptible=st.sampled_from([False, False, False, True]),
        cpu=st.integers(0, 3),
        wants_node=st.sampled_from(["", "", *NODES]),
    )
    def come(self, queue: str, **of: Any) -> None:
        self._come(queue, **of)

    def _come(self, queue: str, *, model: str = "", wants: Any = WANTS[0], **of: Any) -> None:
        self.count += 1
        claim, name = f"c{self.count}", f"p{self.count}"
        self.model.claims[claim] = Held(claim, model, **wants)
        self._show_claim(claim)
        plain = {"priority": 0, "non_preemptible": False, "cpu": 1, "wants_node": ""}
        self._enter(User(name, queue, claim, origin=name, **{**plain, **of}))

    @precondition(lambda self: self.model.claims)
    @rule(data=st.data(), queue=st.sampled_from(LEAVES), priority=st.integers(0, 2))
    def join(self, data: st.DataObject, queue: str, priority: int) -> None:
        """One more pod uses a claim that is there."""
        self.count += 1
        claim = data.draw(st.sampled_from(sorted(self.model.claims)))
        name = f"p{self.count}"
        self._enter(User(name, queue, claim, priority, False, 1, "", name))

    @precondition(lambda self: self.model.users)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A pod ends by itself."""
        self.lost.clear()
        self._leave(self.model.users[data.draw(st.sampled_from(sorted(self.model.users)))])

    @rule(queue=st.sampled_from(sorted(PARENTS)), quota=st.integers(0, 3))
    def change_quota(self, queue: str, quota: int) -> None:
        self.model.quotas[queue] = quota
        self.lost.clear()
        self._show_queues()

    @rule()
    def schedule(self) -> None:
        """kube-scheduler tries all that wait; the most urgent first."""
        for user in sorted(self.model.users.values(), key=lambda u: (-u.priority, u.name)):
            if not user.node:
                self._try(user)
        self._check_promises()

    @precondition(lambda self: any(not u.node for u in self.model.users.values()))
    @rule(data=st.data(), dies=st.sampled_from([False, False, True]))
    def reclaim(self, data: st.DataObject, dies: bool) -> None:
        """One pod is decided about; the leader may die before all were evicted."""
        self.schedule()
        waiting = sorted(u.name for u in self.model.users.values() if self._waits(u))
        if not waiting:
            return
        user = self.model.users[data.draw(st.sampled_from(waiting))]
        decision = self._decided(user)
        if isinstance(decision, Take):
            most = len(decision.pods)
            count = data.draw(st.integers(0, most - 1)) if dies else most
            self._evict(user, decision, count)
        if dies:
            self._restart()

    @precondition(lambda self: any(u.going for u in self.model.users.values()))
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """The kubelets end some who were evicted; each comes back and waits."""
        going = sorted(u.name for u in self.model.users.values() if u.going)
        self._kill(data.draw(st.sets(st.sampled_from(going), min_size=1)))

    def teardown(self) -> None:
        """With constant demand evictions end, and whoever waits then is told why."""
        if not self.model.quotas:
            return
        for _ in range(MOST_ROUNDS):
            before = self._state()
            self._kill({u.name for u in self.model.users.values() if u.going})
            self.schedule()
            for user in list(self.model.users.values()):
                decision = self._decided(user) if self._waits(user) else None
                if isinstance(decision, Take):
                    self._evict(user, decision, len(decision.pods))
            if before == self._state() and not self._end_holds():
                break
        else:
            raise AssertionError(f"evictions do not end: {self.model}")
        for user in self.model.users.values():
            if not user.node:
                self._check_told(user)

    def _waits(self, user: User) -> bool:
        return user.tried and not user.node and not user.in_vain

    def _state(self) -> list[tuple[Any, ...]]:
        return [(u.name, u.node, u.going, u.held, u.in_vain) for u in self.model.users.values()]

    # How it is done.

    def _show_devices(self) -> None:
        for node in NODES:
            names = [("onvif", one.name) for one in DEVICES if one.node == node]
            put(self.world, a_slice(node, *names, nodeName=node))

    def _show_queues(self) -> None:
        for name, parent in PARENTS.items():
            put(self.world, a_queue(name, parent=parent, onvif=(self.model.quotas[name], -1)))

    def _body(self, user: User) -> dict[str, Any]:
        spec: dict[str, Any] = {"priority": user.priority}
        if user.wants_node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": user.wants_node}
        conditions = [*(TRIED if user.tried else ()), *([HELD] if user.held else ())]
        obj = a_pod_object(
            user.name,
            queue=user.queue,
            claims=[user.claim],
            requests={"cpu": str(user.cpu)},
            non_preemptible=user.non_preemptible,
            node=user.node,
            spec=spec,
            status={} if user.node else {"conditions": conditions},
        )
        if user.going:
            obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
        return obj

    def _pod(self, user: User) -> PodView:
        return pod_view(self._body(user), SETTINGS)

    def _enter(self, user: User) -> None:
        self.model.users[user.name] = user
        put(self.world, self._pod(user))

    def _request(self, claim: Held) -> dict[str, Any]:
        more: dict[str, Any] = {"allocationMode": "All"} if claim.all else {"count": claim.count}
        if claim.model:
            text = f"device.attributes['moorage.dev'].model == '{claim.model}'"
            more["selectors"] = [{"cel": {"expression": text}}]
        return a_request(slots=None if claim.slots is None else str(claim.slots), **more)

    def _show_claim(self, name: str) -> None:
        claim, users = self.model.claims[name], self.model.users_of(name)
        if not users:
            claim.owner, claim.devices = "", ()
            put(self.world, a_claim(name, requests=[self._request(claim)]))
            return
        slots = str(claim.of_each)
        found = [(d, {} if d.slots is None else {"slots": slots}) for d in claim.devices]
        of = {
            "queue": claim.owner,
            "results": [a_result(pool=d.node, device=d.name, **more) for d, more in found],
            "requests": [self._request(claim)],
        }
        put(self.world, an_allocated_claim(name, *(user.name for user in users), **of))

    def _leave(self, user: User) -> None:
        del self.model.users[user.name]
        self.world.delete_pod(pod_uid(user.name))
        self.world.end_hold(pod_uid(user.name))
        self._show_claim(user.claim)

    def _kill(self, names: Collection[str]) -> None:
        for user in [self.model.users[name] for name in sorted(names)]:
            self._leave(user)
            self.count += 1
            back: dict[str, Any] = {
                "node": "",
                "going": False,
                "tried": False,
                "held": False,
                "in_vain": False,
            }
            self._enter(replace(user, name=f"p{self.count}", **back))

    def _try(self, user: User) -> None:
        pod, claim = self._pod(user), self.model.claims[user.claim]
        self.world.assumptions.forget(pod.uid)
        verdict = self._verdict(user)
        found = self._devices_for(user) if isinstance(verdict, Admitted) else ()
        if not found:
            user.tried = True
            put(self.world, self._pod(user))
            return
        assert isinstance(verdict, Admitted)
        assume(pod, verdict, self.world, NOW)
        user.node, user.held, claim.devices = found[0].node, False, found
        claim.owner = claim.owner or user.queue
        self._show_claim(user.claim)
        put(self.world, self._pod(user))
        self.world.end_hold(pod.uid)

    def _verdict(self, user: User) -> Verdict:
        pod = self._pod(user)
        return judge(pod, self.world.facts.claims_of(pod), self.world)

    def _devices_for(self, user: User) -> tuple[Device, ...]:
        found = self.model.claims[user.claim].devices
        if not found:
            return next(self.model.places(user, None), ())
        node = found[0].node
        is_there = user.wants_node in ("", node) and self.model.has_cpu(node, user, None)
        return found if is_there else ()

    def _decide(self, user: User) -> Decision:
        on = {n: [d for d in DEVICES if d.node == n] for n in NODES}
        slices = [
            a_slice_object(*(a_device(d.name, slots=d.slots, model=d.model) for d in on[n]), node=n)
            for n in NODES
        ]
        cluster = Cluster(self.world, *slices)
        labels = {n: {"kubernetes.io/hostname": n} for n in NODES}
        cluster.nodes = {n: a_node_object(n, labels=labels[n]) for n in NODES}
        users = self.model.users.values()
        cluster.pods = {n: [self._body(u) for u in users if u.node == n] for n in NODES}
        claim = self.model.claims[user.claim]
        cluster.requests = {claim.name: [self._request(claim)]}
        cluster.constraints = [{"matchAttribute": "moorage.dev/model"}] if claim.agree else []
        body = self._body(user)
        limits = body["spec"]["containers"][0]["resources"]["limits"]
        cluster.waiting = {"requests": limits, "spec": {**body["spec"], "resourceClaims": []}}
        return cluster.decide(user.name)

    def _decided(self, user: User) -> Decision:
        decision = self._decide(user)
        if isinstance(decision, Take):
            self._check(user, decision)
        return decision

    def _evict(self, user: User, take: Take, count: int) -> None:
        """The hold, the condition, and the first of the evictions."""
        self.world.hold(take.hold)
        user.held = True
        put(self.world, self._pod(user))
        for pod in take.pods[:count]:
            other = self.model.users[pod.name]
            owner = self.model.claims[other.claim].owner
            if other.queue == owner:
                self.lost.add((other.origin, owner, user.origin, self.model.payer(user)))
            other.going = True
            put(self.world, self._pod(other))
        if count == len(take.pods):
            gone = {u.name for victim in take.victims for u in victim.users}
            self.was_promised[user.name] = _held(take)
            self.promises[user.name] = (_held(take), gone)

    def _restart(self) -> None:
        """Another process leads: it knows what the API says."""
        self.world = a_world()
        self._show_devices()
        self._show_queues()
        for name in self.model.claims:
            self._show_claim(name)
        for user in self.model.users.values():
            put(self.world, self._pod(user))
        for user in self.model.users.values():
            hold = hold_of(self._pod(user), self.world) if user.held else None
            if hold is not None:
                self.world.hold(hold)

    def _end_hold(self, user: User) -> None:
        """The time is over."""
        user.held, user.in_vain = False, True
        self.world.end_hold(pod_uid(user.name))
        put(self.world, self._pod(user))

    def _end_holds(self) -> bool:
        """Nothing moves any more: what is held yet is held in vain."""
        held = [user for user in self.model.users.values() if user.held]
        for user in held:
            self._end_hold(user)
        return bool(held)

    # The checker.

    def _check_promises(self) -> None:
        """Whoever got something freed has it, once those are gone."""
        for name, (freed, gone) in list(self.promises.items()):
            user = self.model.users.get(name)
            if user is not None and not user.node and gone & self.model.users.keys():
                continue
            del self.promises[name]
            if user is None or user.node:
                continue
            users = [c for c in self.model.claims.values() if freed & {*c.devices}]
            why = f"{user} was to have {freed}, which {users} have: {self._verdict(user)}"
            assert not self._finds_place(user, freed) or not self.model.quota_allows(user), why
            self._end_hold(user)

    def _finds_place(self, user: User, freed: frozenset[Device]) -> bool:
        if self.model.claims[user.claim].devices:
            # Who shares its claim was let in first, and perhaps where it cannot go.
            return bool(self._devices_for(user))
        nodes = {d.node for d in (*freed, *self._changed_places(freed))}
        return all(self.model.has_cpu(node, user, None) for node in nodes)

    def _changed_places(self, freed: frozenset[Device]) -> Iterator[Device]:
        """What those were to have who have it: pods that are alike may take each other's."""
        for user in self.model.users.values():
            if user.node and freed & {*self.model.claims[user.claim].devices}:
                yield from self.was_promised.get(user.name, freed)

    def _check(self, user: User, take: Take) -> None:
        gone = {pod.name for pod in take.pods}
        claims = {victim.claim.name for victim in take.victims if victim.claim}
        assert gone, "somebody is evicted"
        nobodys = self._nobodys(user)
        assert not any(self.model.places(user, (), nobodys)), "in vain"
        why = self._forbidden(user, claims, gone)
        assert not why, why
        self._check_back_and_forth(user, claims)
        held = _held(take)
        assert held <= {*nobodys}, "it is another pod's"
        served = map(set, self.model.places(user, gone, nobodys))
        assert any(held == found for found in served), f"{held} does not serve {user}"
        self._check_needed(user, claims, held)

    def _check_needed(self, user: User, claims: Collection[str], held: Collection[Device]) -> None:
        """Without any one of them nothing of the node would do, unless others come there."""
        (node,) = {one.node for one in held}
        holds = (h for h in self.world.assumptions.holds if h.pod != pod_uid(user.name))
        if any(hold.node == node for hold in holds):
            return
        there = [one for one in self._nobodys(user) if one.node == node]
        for spared in claims:
            others = self._users({*claims} - {spared})
            assert not any(self.model.places(user, others, there)), f"{spared} goes in vain"

    def _check_back_and_forth(self, user: User, claims: Collection[str]) -> None:
        payer = self.model.payer(user)
        for claim in (self.model.claims[name] for name in claims):
            for other in self.model.users_of(claim.name):
                lost = (user.origin, payer, other.origin, claim.owner)
                assert lost not in self.lost, f"{user} and {other} go back and forth"

    def _nobodys(self, user: User) -> list[Device]:
        """Devices that are held for no other pod."""
        holds = [h for h in self.world.assumptions.holds if h.pod != pod_uid(user.name)]
        held = {found.name for hold in holds for found in hold.devices}
        return [one for one in DEVICES if one.name not in held]

    def _forbidden(self, user: User, claims: Collection[str], gone: Collection[str]) -> str:
        """Why these may not go for a pod; "" where they may."""
        payer = self.model.payer(user)
        for claim in (self.model.claims[name] for name in claims):
            if why := self._stays(user, payer, claim, gone):
                return why
        for place in PARENTS.keys() - path(payer):
            left = self.model.usage(place, gone)
            if left < min(self.model.usage(place), self.model.quotas[place]):
                return f"{place} would have less than its quota"
        return ""

    def _stays(self, user: User, payer: str, claim: Held, gone: Collection[str]) -> str:
        users = [u for u in self.model.users_of(claim.name) if not u.going]
        if any(u.name not in gone for u in users):
            return f"of {claim} somebody stays"
        if any(u.non_preemptible for u in users):
            return f"{claim} has non-preemptible users"
        if payer not in path(claim.owner):
            place = self._over_quota(user, payer, claim.owner)
            return place and f"{place} would be over its quota"
        is_lower = all(u.priority < user.priority for u in users)
        return "" if is_lower else f"{claim} has users of no lower priority"

    def _over_quota(self, user: User, payer: str, owner: str) -> str:
        cost = self.model.claims[user.claim].cost
        for place in path(payer):
            if place in path(owner):
                return ""
            promised = self._promised(user, place)
            if self.model.usage(place) + promised + cost > self.model.quotas[place]:
                return place
        return ""

    def _promised(self, user: User, place: str) -> int:
        holds = [h for h in self.world.assumptions.holds if h.pod != pod_uid(user.name)]
        return sum(h.usage[KEY] for h in holds if place in path(h.queue))

    def _check_told(self, user: User) -> None:
        """Nobody could go for whoever waits, and within the quota the queue says so."""
        verdict = self._verdict(user)
        if not isinstance(verdict, Admitted):
            never = (Reason.DEVICE_HELD, Reason.OVER_LIMIT)
            assert verdict.reason not in never, f"{user} waits for nothing: {verdict}"
            return
        claim = self.model.claims[user.claim]
        if claim.devices or user.in_vain:
            return
        decision = self._decide(user)
        assert isinstance(decision, Nobody), decision
        payer = self.model.payer(user)
        if self.model.usage(payer) + claim.cost <= self.model.quotas[payer]:
            assert decision.unmet == payer, decision
        for held in [c for c in self.model.claims.values() if c.devices]:
            gone = self._users({held.name})
            serves = any({*held.devices} & {*found} for found in self.model.places(user, gone))
            if serves and not self._forbidden(user, {held.name}, gone):
                assert self._keeps_its_own(user, gone), f"{held} could go for {user}: {decision}"

    def _keeps_its_own(self, user: User, gone: Collection[str]) -> bool:
        """Whether pods of its own queue that are no less urgent would go for it."""
        users = (self.model.users[name] for name in gone)
        return any(u.queue == user.queue and u.priority >= user.priority for u in users)

    def _users(self, claims: Collection[str]) -> set[str]:
        return {user.name for name in claims for user in self.model.users_of(name)}


def _held(take: Take) -> frozenset[Device]:
    return frozenset(d for d in DEVICES if device(d.name, d.node) in take.hold.devices)


TestDeviceReclaims = DeviceReclaims.TestCase
TestDeviceReclaims.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


# Whether it finds what is wrong.


def _no_hold_keeps_others_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "devices_held", lambda _: iter(()))


def _quotas_of_others_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidates, "leaves_quotas", lambda *_: True)
    patch.setattr(Candidates, "may_be_over", lambda *_: True)


def _only_the_owners_pods_go(patch: pytest.MonkeyPatch) -> None:
    before = victims._victim  # noqa: SLF001  It is broken on purpose.

    def own(what: str, owner: QueueName, claim: Any, users: Any, world: World) -> Any:
        mine = tuple(pod for pod in users if world.facts.queue_of(pod) == owner)
        return before(what, owner, claim, mine, world)

    patch.setattr(victims, "_victim", own)


def _any_device_has_room(patch: pytest.MonkeyPatch) -> None:
    before = DeviceUse.has_room

    def has_room(self: DeviceUse, offer: Offer, slots: int, gone: Any, taken: int = 0) -> bool:
        is_free = not self.is_promised(offer.device) and bool(gone)
        return is_free or before(self, offer, slots, gone, taken)

    patch.setattr(DeviceUse, "has_room", has_room)


def _priorities_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(victims, "protection", lambda *_: None)
    patch.setattr("scheduler_plugin.reclaiming.victims.candidates.protection", lambda *_: None)


def _nothing_has_to_agree(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Places, "_variants", lambda _self, _asks, wanted: [wanted])


def _all_are_those_that_are_free(patch: pytest.MonkeyPatch) -> None:
    before = Places._wanted  # noqa: SLF001  It is broken on purpose.

    def wanted(self: Places, ask: Any, *others: Any) -> Any:
        units = before(self, ask, *others)
        return units if ask.alternative.count else [u for u in units if u] or [()]

    patch.setattr(Places, "_wanted", wanted)


BROKEN = {
    _no_hold_keeps_others_away: "was to have",
    _quotas_of_others_do_not_count: "less than its quota",
    _only_the_owners_pods_go: "somebody stays|could go for|was to have",
    _any_device_has_room: "does not serve",
    _priorities_do_not_count: "no lower priority",
    _nothing_has_to_agree: "does not serve|could go for",
    _all_are_those_that_are_free: "does not serve",
}


@pytest.mark.parametrize(("broken", "said"), BROKEN.items())
def test_the_checker_finds_a_line_that_is_broken(
    broken: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)

    with pytest.raises(AssertionError, match=said):
        run_state_machine_as_test(DeviceReclaims, settings=FOUND)


class BackAndForth(DeviceReclaims):
    """Knows no other rule than that nobody takes back what was taken from it."""

    def _forbidden(self, *_: object) -> str:
        return ""

    def _check_told(self, user: User) -> None:
        pass


def test_the_checker_finds_two_that_take_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    _quotas_of_others_do_not_count(monkeypatch)
    monkeypatch.setattr(Candidates, "stays_within", lambda *_: True)

    with pytest.raises(AssertionError, match="back and forth"):
        run_state_machine_as_test(BackAndForth, settings=FOUND)
