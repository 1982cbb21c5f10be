"""Reclaim over histories: pods come, run, are evicted and come back, until nothing moves.

The checker has a model of its own (who uses what, in plain dicts) and knows the rules as sentences
of the documentation, not as the code has them:

- nobody non-preemptible is evicted, and of a claim that is taken all users are;
- no queue is taken below its quota, and nobody gets by it more than its own;
- whoever is left out of the set would have left the pod waiting;
- whoever was evicted for a pod does not come back and take its room while nobody ends;
- with constant demand (whoever is evicted comes back and waits) evictions end;
- then every queue whose pods wait within its quota is told that nobody can go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.pods import PodView, pod_view
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.room import decide
from scheduler_plugin.reclaiming.victims.candidates import Candidates
from scheduler_plugin.reclaiming.wants import Nobody
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.histories import FOUND

PARENTS = {"root": "", "a": "root", "b": "root", "a1": "a", "a2": "a", "b1": "b"}
LEAVES = ("a1", "a2", "b1", "b")
MOST_ROUNDS = 60
KEY = ResourceKey("onvif")


def path(queue: str) -> list[str]:
    return [queue, *path(PARENTS[queue])] if PARENTS[queue] else [queue]


@dataclass
class User:
    """A pod of the model; whoever comes back has the origin of the one that was evicted."""

    name: str
    origin: str
    queue: str
    claim: str
    priority: int
    non_preemptible: bool
    runs: bool = False
    going: bool = False


@dataclass
class Held:
    """A claim of the model; its owner is the queue of the pod that was bound to it first."""

    name: str
    cost: int
    owner: str = ""


@dataclass
class Model:
    """Who uses what, and the ceilings."""

    quotas: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    claims: dict[str, Held] = field(default_factory=dict)

    def users_of(self, claim: str) -> list[User]:
        return [user for user in self.users.values() if user.claim == claim and user.runs]

    def payer(self, user: User) -> str:
        return self.claims[user.claim].owner or user.queue

    def usage(self, queue: str, without: Collection[str] = ()) -> int:
        """What is charged to a queue and those below it once these pods, and those going, left."""
        return sum(
            claim.cost
            for claim in self.claims.values()
            if claim.owner
            and queue in path(claim.owner)
            and any(u.name not in without and not u.going for u in self.users_of(claim.name))
        )


class Reclaims(RuleBasedStateMachine):
    """One cluster; kube-scheduler and kubelet do at once what they are let to."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.world: World = a_world()
        self.count = 0
        # Who was evicted and the owner of what it used, for whom and who paid for that.
        self.lost: set[tuple[str, str, str, str]] = set()

    @initialize(
        quotas=st.fixed_dictionaries({name: st.integers(0, 3) for name in PARENTS}),
        room=st.integers(1, 4),
        beyond=st.fixed_dictionaries({name: st.integers(0, 4) for name in PARENTS}),
        there=st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 1)), max_size=6),
    )
    def begin(
        self,
        quotas: dict[str, int],
        room: int,
        beyond: dict[str, int],
        there: list[tuple[str, int]],
    ) -> None:
        self.model.quotas = quotas
        self.model.limits = {name: quotas[name] + beyond[name] for name in PARENTS}
        self.model.quotas["root"] = self.model.limits["root"] = room
        for name, parent in PARENTS.items():
            spec = (quotas[name], self.model.limits[name])
            put(self.world, a_queue(name, parent=parent, onvif=spec))
        for queue, priority in there:
            self._come(queue, 1, priority, non_preemptible=False)
        self.schedule()

    # What people and the cluster do.

    @rule(
        queue=st.sampled_from(LEAVES),
        cost=st.integers(1, 2),
        priority=st.integers(0, 2),
        non_preemptible=st.sampled_from([False, False, False, True]),
    )
    def come(self, queue: str, cost: int, priority: int, non_preemptible: bool) -> None:
        self._come(queue, cost, priority, non_preemptible=non_preemptible)

    def _come(self, queue: str, cost: int, priority: int, *, non_preemptible: bool) -> None:
        self.count += 1
        claim = f"c{self.count}"
        self.model.claims[claim] = Held(claim, cost)
        self._show_claim(claim)
        name = f"p{self.count}"
        self._enter(User(name, name, queue, claim, priority, non_preemptible))

    @precondition(lambda self: self.model.claims)
    @rule(data=st.data(), queue=st.sampled_from(LEAVES), priority=st.integers(0, 2))
    def join(self, data: st.DataObject, queue: str, priority: int) -> None:
        """One more pod uses a claim that is there."""
        self.count += 1
        claim = data.draw(st.sampled_from(sorted(self.model.claims)))
        name = f"p{self.count}"
        self._enter(User(name, name, queue, claim, priority, non_preemptible=False))

    @precondition(lambda self: self.model.users)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A pod ends by itself."""
        self.lost.clear()
        self._leave(self.model.users[data.draw(st.sampled_from(sorted(self.model.users)))])

    @rule()
    def schedule(self) -> None:
        """kube-scheduler tries all that wait; the most urgent first."""
        for user in sorted(self.model.users.values(), key=lambda u: (-u.priority, u.name)):
            if not user.runs:
                self._try(user)

    @precondition(lambda self: any(not u.runs for u in self.model.users.values()))
    @rule(data=st.data())
    def reclaim(self, data: st.DataObject) -> None:
        """One pod is decided about; its victims are on their way out, and stay there."""
        waiting = sorted(u.name for u in self.model.users.values() if not u.runs)
        self._reclaim(self.model.users[data.draw(st.sampled_from(waiting))])

    @rule()
    def kill(self) -> None:
        """The kubelets end whoever was evicted; each comes back and waits."""
        for user in [u for u in self.model.users.values() if u.going]:
            self._leave(user)
            self.count += 1
            if user.claim in self.model.claims:
                self._enter(replace(user, name=f"p{self.count}", runs=False, going=False))

    def teardown(self) -> None:
        """With constant demand evictions end, and whoever waits then is told why."""
        if not self.model.quotas:
            return
        for _ in range(MOST_ROUNDS):
            if not self._moves():
                break
        else:
            raise AssertionError(f"evictions do not end: {self.model}")
        for user in self.model.users.values():
            if not user.runs:
                self._check_told(user)

    def _moves(self) -> bool:
        """A round of all that go on by themselves; whether anything was different after it."""
        before, running = self.count, self._running()
        self.kill()
        self.schedule()
        taken = [self._reclaim(u) for u in list(self.model.users.values()) if not u.runs]
        moved = running != self._running() or before != self.count
        return moved or any(isinstance(found, Take) for found in taken)

    def _running(self) -> set[str]:
        return {user.name for user in self.model.users.values() if user.runs}

    # How it is done.

    def _pod(self, user: User) -> PodView:
        obj = a_pod_object(
            user.name,
            queue=user.queue,
            claims=[user.claim],
            non_preemptible=user.non_preemptible,
            node="n" if user.runs else "",
            spec={"priority": user.priority},
        )
        if user.going:
            obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
        return pod_view(obj, SETTINGS)

    def _enter(self, user: User) -> None:
        self.model.users[user.name] = user
        put(self.world, self._pod(user))

    def _show_claim(self, name: str) -> None:
        claim, users = self.model.claims[name], self.model.users_of(name)
        requests = [a_request(name=f"r{number}") for number in range(claim.cost)]
        if not users:
            claim.owner = ""
            put(self.world, a_claim(name, requests=requests))
            return
        results = [a_result(f"r{number}") for number in range(claim.cost)]
        names = [user.name for user in users]
        put(
            self.world,
            an_allocated_claim(name, *names, queue=claim.owner, results=results, requests=requests),
        )

    def _leave(self, user: User) -> None:
        del self.model.users[user.name]
        self.world.delete_pod(pod_uid(user.name))
        self._show_claim(user.claim)

    def _try(self, user: User) -> None:
        pod = self._pod(user)
        self.world.assumptions.forget(pod.uid)
        verdict = judge(pod, self.world.facts.claims_of(pod), self.world)
        if not isinstance(verdict, Admitted):
            return
        assume(pod, verdict, self.world, NOW)
        user.runs = True
        claim = self.model.claims[user.claim]
        claim.owner = claim.owner or user.queue
        self._show_claim(user.claim)
        put(self.world, self._pod(user))
        for place in path(claim.owner):
            limit = self.model.limits[place]
            used = sum(
                c.cost for c in self.model.claims.values() if c.owner and place in path(c.owner)
            )
            assert used <= limit, f"{place} uses {used} of {limit}"

    def _decide(self, user: User) -> Decision:
        found = list(decide(self._pod(user), self.world, NOW))[-1]
        assert found is not None
        return found

    def _reclaim(self, user: User) -> Decision:
        decision = self._decide(user)
        if isinstance(decision, Take):
            self._check(user, decision)
            self.world.hold(decision.hold)
            for pod in decision.pods:
                other = self.model.users[pod.name]
                owner = self.model.claims[other.claim].owner
                if other.queue == owner:
                    self.lost.add((other.origin, owner, user.origin, self.model.payer(user)))
                other.going = True
                put(self.world, self._pod(other))
        return decision

    # The checker.

    def _check(self, user: User, take: Take) -> None:
        gone = {pod.name for pod in take.pods}
        assert gone, "somebody is evicted"
        assert not any(self.model.users[name].non_preemptible for name in gone)
        for claim in {victim.claim.name for victim in take.victims if victim.claim}:
            stay = [u for u in self.model.users_of(claim) if u.name not in gone and not u.going]
            assert not stay, f"{stay} would keep {claim}"
        payer = self.model.payer(user)
        lost = {q for q in PARENTS if self.model.usage(q, gone) < self.model.usage(q)}
        for place in lost - set(path(payer)):
            assert self.model.usage(place, gone) >= self.model.quotas[place], place
        self._check_right(user, payer, take)
        self._check_needed(user, payer, take)
        self._check_back_and_forth(user, payer, take)

    def _check_right(self, user: User, payer: str, take: Take) -> None:
        cost = self.model.claims[user.claim].cost
        promised = sum(h.usage[KEY] for h in self._other_holds(user) if h.queue == payer)
        for victim in take.victims:
            owner = str(victim.owner)
            if payer in path(owner):
                assert all(u.priority < user.priority for u in victim.users if not u.deleting)
                continue
            below = [place for place in path(payer) if place not in path(owner)]
            for place in below:
                after = self.model.usage(place) + promised + cost
                assert after <= self.model.quotas[place], (place, after)

    def _check_back_and_forth(self, user: User, payer: str, take: Take) -> None:
        for other in (self.model.users[pod.name] for pod in take.pods):
            lost = (user.origin, payer, other.origin, self.model.claims[other.claim].owner)
            assert lost not in self.lost, f"{user} and {other} go back and forth"

    def _other_holds(self, user: User) -> Iterator[Hold]:
        return (h for h in self.world.assumptions.holds if h.pod != pod_uid(user.name))

    def _check_needed(self, user: User, payer: str, take: Take) -> None:
        """Without any one of the victims the pod would still be refused at some limit."""
        for spared in take.victims:
            others = [v for v in take.victims if v is not spared]
            gone = {pod.name for victim in others for pod in victim.users}
            if {pod.name for pod in spared.users} <= gone:
                continue
            assert self._is_short(user, payer, gone), f"{spared.what} goes in vain"

    def _is_short(self, user: User, payer: str, gone: Collection[str]) -> bool:
        cost = self.model.claims[user.claim].cost
        for place in path(payer):
            held = sum(h.usage[KEY] for h in self._other_holds(user) if place in path(h.queue))
            if self.model.usage(place, gone) + held + cost > self.model.limits[place]:
                return True
        return False

    def _check_told(self, user: User) -> None:
        """Whoever waits for room within the quota is told that nobody can make it."""
        pod = self._pod(user)
        verdict = judge(pod, self.world.facts.claims_of(pod), self.world)
        assert not isinstance(verdict, Admitted), f"{user} waits for nothing"
        if verdict.reason is not Reason.OVER_LIMIT:
            return
        payer = self.model.payer(user)
        used = self.model.usage(payer) + self.model.claims[user.claim].cost
        held = self.world.held(QueueName(payer))[KEY]
        decision = self._decide(user)
        assert isinstance(decision, Nobody)
        if used + held <= self.model.quotas[payer] and not user.non_preemptible:
            assert decision.unmet == payer, decision


TestReclaims = Reclaims.TestCase
TestReclaims.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class BackAndForth(Reclaims):
    """Knows no other rule than that nobody takes back what was taken from it."""

    def _check(self, user: User, take: Take) -> None:
        self._check_back_and_forth(user, self.model.payer(user), take)

    def teardown(self) -> None:
        for _ in range(10 if self.model.quotas else 0):
            self._moves()


def test_the_checker_finds_two_that_take_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Candidates, "leaves_quotas", lambda *_: True)
    monkeypatch.setattr(Candidates, "may_be_over", lambda *_: True)
    monkeypatch.setattr(Candidates, "stays_within", lambda *_: True)

    with pytest.raises(AssertionError, match="back and forth"):
        run_state_machine_as_test(BackAndForth, settings=FOUND)
