"""Cycles over histories: pods come, run, are evicted and come back, until nothing moves.

The checker has a model of its own (who uses what, in plain dicts) and knows the rules as sentences
of the documentation, not as the code has them:

- nobody non-preemptible is evicted, and of a claim that is taken all users are;
- whoever something is taken from was above its share before, and so was each queue above it;
- nobody gets by it more than its own share, without those that go for it;
- in one queue the lower priority goes, but for a claim that its owner left to others;
- whoever is left out of the set would have left the pod waiting;
- whoever was evicted for a pod does not come back and take its room while nobody ends;
- with constant demand (whoever is evicted comes back and waits) and claims of one device, evictions
  end;
- then every queue whose pods wait within its quota is told that nobody can go.
"""

from __future__ import annotations

from collections.abc import Collection
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

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.targets import Decision, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
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

    def usage_of_claim(self, claim: str) -> int:
        """What is charged for it, and stays so."""
        stays = any(not user.going for user in self.users_of(claim))
        return self.claims[claim].cost if self.claims[claim].owner and stays else 0

    def kept(self, queue: str) -> int:
        """What of it cannot be taken: an own pod that uses it is not preemptible."""
        return sum(
            claim.cost
            for claim in self.claims.values()
            if claim.owner
            and queue in path(claim.owner)
            and any(u.non_preemptible and u.queue == claim.owner for u in self.users_of(claim.name))
        )

    def want(self, queue: str) -> int:
        """What is charged and asked for, each queue's ended by its limit."""
        own = 0
        for claim in self.claims.values():
            users = [user for user in self.users.values() if user.claim == claim.name]
            stays = any(user.runs and not user.going for user in users)
            asked = [user for user in users if not user.runs]
            if claim.owner == queue and stays:
                own += claim.cost
            elif asked and not (claim.owner and stays):
                own += claim.cost * (queue == (claim.owner or self.oldest(asked).queue))
        below = sum(self.want(child) for child, parent in PARENTS.items() if parent == queue)
        return min(self.limits[queue], own + below)

    def oldest(self, users: list[User]) -> User:
        return min(users, key=lambda user: user.name)

    def share(self, queue: str) -> int:
        """Dealt one by one: what cannot be taken, then to whoever has the least of its quota."""
        if not PARENTS[queue]:
            stays, wants = self.kept(queue), self.want(queue)
            return max(min(stays, wants), min(self.quotas[queue], wants))
        children = [child for child, parent in PARENTS.items() if parent == PARENTS[queue]]
        above = PARENTS[queue]
        left = self.share(above) if self.quotas[above] else self.want(above)
        given: dict[str, int] = dict.fromkeys(children, 0)
        for ends in (self.kept, lambda child: min(self.quotas[child], self.want(child))):
            kept = dict(given)
            for _ in range(left):
                open_ = [c for c in children if given[c] < min(ends(c), self.want(c))]
                if not open_:
                    break
                weight = self.kept if ends == self.kept else self.quotas.__getitem__
                turn = {c: (2 * (given[c] - kept[c]) + 1) / weight(c) for c in open_}
                given[min(open_, key=lambda c: (turn[c], c))] += 1
                left -= 1
        return given[queue]


class Cycles(RuleBasedStateMachine):
    """One cluster; kube-scheduler and kubelet do at once what they are let to."""

    most = 1
    """Devices of a claim."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.world: World = a_world()
        self.count = 0
        # Whom the cycle served before, and how.
        self.served: list[tuple[User, Decision]] = []
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
        self.lost.clear()  # Shares follow from what is asked for.
        self._come(queue, min(cost, self.most), priority, non_preemptible=non_preemptible)

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
        self.lost.clear()
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

    @rule()
    def cycle(self) -> None:
        self._cycle()

    def _cycle(self) -> bool:
        """All that wait are served; whether anybody goes."""
        found = Cycle(self.world, NOW, NONE_EXCLUDED, LimitsOnly())
        waiting = [user for user in self.model.users.values() if not user.runs]
        self.served = []
        for user in sorted(waiting, key=lambda u: (-u.priority, u.name)):
            decision = found.serve(self._pod(user))
            if isinstance(decision, Targets):
                self._check(user, decision)
            if not isinstance(decision, NoCandidates):
                self.served.append((user, decision))
        takes = [(user, found) for user, found in self.served if isinstance(found, Targets)]
        for user, take in takes:
            self._carry_out(user, take)
        return bool(takes)

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
        has_taken = self._cycle()
        return has_taken or running != self._running() or before != self.count

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

    def _carry_out(self, user: User, take: Targets) -> None:
        for hold in take.holds:
            self.world.hold(hold)
        for pod in take.pods:
            other = self.model.users[pod.name]
            owner = self.model.claims[other.claim].owner
            if other.queue == owner:
                self.lost.add((other.origin, owner, user.origin, self.model.payer(user)))
            other.going = True
            put(self.world, self._pod(other))

    # The checker.

    def _check(self, user: User, take: Targets) -> None:
        gone = {pod.name for pod in take.pods}
        before = self._gone_before()
        assert gone, "somebody is evicted"
        assert not any(self.model.users[name].non_preemptible for name in gone)
        for claim in {victim.claim.name for victim in take.victims if victim.claim}:
            users = self.model.users_of(claim)
            stay = [u for u in users if u.name not in gone | before and not u.going]
            assert not stay, f"{stay} would keep {claim}"
        self._check_above(user, take, before)
        self._check_right(user, take)
        self._check_needed(user, take)
        self._check_back_and_forth(user, take)

    def _check_above(self, user: User, take: Targets, before: set[str]) -> None:
        """Each queue on the way to the common ancestor was above its quota before it was taken."""
        payer, gone = self.model.payer(user), set(before)
        shares = {queue: self.model.share(queue) for queue in PARENTS}
        for victim in take.victims:
            owner = str(victim.owner)
            for place in [place for place in path(owner) if place not in path(payer)]:
                assert self.model.usage(place, gone) > shares[place], place
            gone |= {pod.name for pod in victim.users}

    def _gone_before(self) -> set[str]:
        takes = (found for _, found in self.served if isinstance(found, Targets))
        return {pod.name for take in takes for pod in take.pods}

    def _reserved(self, place: str, user: User) -> int:
        """What is held for others below a queue, and what those served before will be charged."""
        served = {other.name: other for other, _ in self.served}
        own = {pod_uid(name) for name in (user.name, *served)}
        holds = [hold for hold in self.world.assumptions.holds if hold.pod not in own]
        claims: dict[str, str] = {}
        for other in served.values():
            if not self.model.usage_of_claim(other.claim):
                claims.setdefault(other.claim, self.model.payer(other))
        return sum(hold.usage[KEY] for hold in holds if place in path(hold.queue)) + sum(
            self.model.claims[claim].cost for claim, queue in claims.items() if place in path(queue)
        )

    def _check_right(self, user: User, take: Targets) -> None:
        payer, cost = self.model.payer(user), self.model.claims[user.claim].cost
        before = self._gone_before() | {pod.name for pod in take.pods}
        for victim in take.victims:
            owner = str(victim.owner)
            if payer in path(owner):
                stay = [self.model.users[u.name] for u in victim.users if not u.deleting]
                was_left = owner == payer and all(u.queue != owner for u in stay)
                assert was_left or all(u.priority < user.priority for u in stay)
                continue
            for place in [place for place in path(payer) if place not in path(owner)]:
                promised = self._reserved(place, user)
                after = self.model.usage(place, before) + promised + cost
                assert after <= self.model.share(place), (place, after)

    def _check_back_and_forth(self, user: User, take: Targets) -> None:
        payer = self.model.payer(user)
        for other in (self.model.users[pod.name] for pod in take.pods):
            lost = (user.origin, payer, other.origin, self.model.claims[other.claim].owner)
            assert lost not in self.lost, f"{user} and {other} go back and forth"

    def _check_needed(self, user: User, take: Targets) -> None:
        """Without any one of the victims the pod would still be refused at some limit."""
        before = self._gone_before()
        for spared in take.victims:
            others = [v for v in take.victims if v is not spared]
            gone = before | {pod.name for victim in others for pod in victim.users}
            if {pod.name for pod in spared.users} <= gone:
                continue
            assert self._is_short(user, gone), f"{spared.what} goes in vain"

    def _is_short(self, user: User, gone: Collection[str]) -> bool:
        payer, cost = self.model.payer(user), self.model.claims[user.claim].cost
        return any(
            self.model.usage(place, gone) + self._reserved(place, user) + cost
            > self.model.limits[place]
            for place in path(payer)
        )

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
        decision = Cycle(self.world, NOW, NONE_EXCLUDED, LimitsOnly()).serve(pod)
        assert isinstance(decision, NoCandidates)
        if used + held <= self.model.share(payer) and not user.non_preemptible:
            assert decision.unmet == payer, decision


TestCycles = Cycles.TestCase
TestCycles.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class Larger(Cycles):
    """Claims of two devices, which may be in and out again without an end: it takes no round."""

    most = 2

    def _check_back_and_forth(self, user: User, take: Targets) -> None:
        pass

    def teardown(self) -> None:
        for _ in range(10 if self.model.quotas else 0):
            self._moves()


TestLarger = Larger.TestCase
TestLarger.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class BackAndForth(Cycles):
    """Knows no other rule than that nobody takes back what was taken from it."""

    def _check(self, user: User, take: Targets) -> None:
        self._check_back_and_forth(user, take)

    def teardown(self) -> None:
        for _ in range(10 if self.model.quotas else 0):
            self._moves()


def test_the_checker_finds_two_that_take_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueShares, "above_share", lambda *_: 1)
    monkeypatch.setattr(QueueShares, "reach", lambda *_: 9)

    with pytest.raises(AssertionError, match="back and forth"):
        run_state_machine_as_test(BackAndForth, settings=FOUND)
