"""Two pods are bound with one claim: every history ends with one owner, and each pod bound once.

Both believe that their own queue becomes the owner, and nothing but the API server stands between
them: the plugin that would agree on one of them is away. Requests arrive in any order, get lost
before or after they were carried out, and processes are killed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from binder.api import Binder
from scheduler_plugin.objects.api import BindRequest, Bound, ClaimOwner, ClaimsChanged
from tests.binder.builders import a_bind, a_binder, an_api, an_owner
from tests.fakes.apiserver import Fault, Happening
from tests.fakes.claim_server import CLAIM, OWNER_POD, QUEUE, FakeClaimServer
from tests.fakes.killed import KilledError

PODS = ("a", "b")
ATTEMPTS = 5


class Binds(RuleBasedStateMachine):
    """kube-scheduler reserves, the binder writes and binds, kube-scheduler takes back."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.server: FakeClaimServer = an_api("a", "b")
        self._set_consumers([])
        self.server.next_happening = self.arrive
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.arriving: dict[str, asyncio.Future[Happening]] = {}
        self.owner_when_bound: tuple[str, str] | None = None
        self.refused: set[str] = set()

    # The binder's requests wait here until the history goes on with them.

    async def arrive(self, _: str) -> Happening:
        task = asyncio.current_task()
        assert task
        self.arriving[task.get_name()] = self.loop.create_future()
        return await self.arriving[task.get_name()]

    def settle(self) -> None:
        async def turns() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())
        for name, task in list(self.tasks.items()):
            if task.done():
                del self.tasks[name]
                with suppress(KilledError):
                    task.result()

    # What is under test.

    async def bind(self, pod: str) -> None:
        binder = a_binder(self.server)
        was_bound = self.is_bound(pod)
        request = self.request(pod)
        outcome = await binder.write_owners(request)
        for _ in range(ATTEMPTS - 1):
            if not isinstance(outcome, ClaimsChanged) or pod in self.refused:
                break
            request = self.request(pod)
            outcome = await binder.write_owners(request)
        if outcome is not None or pod in self.refused:
            await self.give_up(pod, binder, request)
            return
        bound = await binder.bind(request)
        if isinstance(bound, Bound):
            assert self.is_bound(pod)
        else:
            assert not bound.is_certain or self.is_bound(pod) == was_bound
            self.unreserve(pod)

    async def give_up(self, pod: str, binder: Binder, request: BindRequest) -> None:
        """It was refused after all, or its owner could not be written."""
        is_certain = await binder.roll_back(request)
        if is_certain and not all(owner.is_written for owner in request.claims):
            relied_on = [c["name"] for c in self.consumers() if c["name"] != pod]
            assert relied_on or self.server.owner() != (pod, f"uid-of-{pod}")
        self.unreserve(pod)

    def request(self, pod: str) -> BindRequest:
        return a_bind(self.server, pod, self.owner(pod))

    def owner(self, pod: str) -> ClaimOwner:
        """The owner that stands; the pod's own queue where there is none, or a stale one."""
        queue, owner_pod = self.server.owner()
        users = {consumer["uid"] for consumer in self.consumers()}
        if queue and (owner_pod in users or self.owner_when_bound):
            return an_owner(self.server, queue, owner_pod.removeprefix("uid-of-"))
        return an_owner(self.server, pod, pod)

    # What kube-scheduler does.

    def consumers(self) -> list[dict[str, Any]]:
        return list(self.server.claim()["status"]["reservedFor"])

    def is_bound(self, pod: str) -> bool:
        return "nodeName" in self.server.pod(pod)["spec"]

    def reserve(self, pod: str) -> None:
        consumer = {"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"}
        if consumer not in self.consumers():
            self._set_consumers([*self.consumers(), consumer])

    def unreserve(self, pod: str) -> None:
        """A pod that runs after all is reserved for again by the claims' controller."""
        if not self.is_bound(pod):
            self._set_consumers([c for c in self.consumers() if c["name"] != pod])

    def _set_consumers(self, consumers: list[dict[str, Any]]) -> None:
        status = {"reservedFor": consumers}
        self.server.change(CLAIM, lambda claim: claim["status"].update(status))

    # The histories.

    @initialize(owner=st.sampled_from(["", "x", "a"]))
    def a_former_owner_may_stand_still(self, owner: str) -> None:
        def mark(claim: dict[str, Any]) -> None:
            if owner:
                claim["metadata"]["labels"][QUEUE] = owner
                claim["metadata"]["annotations"][OWNER_POD] = "uid-of-x"

        self.server.change(CLAIM, mark)

    def may_ask(self) -> list[str]:
        """A pod that is bound may be asked for again: an answer of the extender was lost."""
        return [pod for pod in PODS if pod not in self.tasks]

    @precondition(lambda self: self.may_ask())
    @rule(data=st.data())
    def kube_scheduler_asks(self, data: st.DataObject) -> None:
        self.ask(data.draw(st.sampled_from(self.may_ask())))

    def ask(self, pod: str) -> None:
        self.reserve(pod)
        self.tasks[pod] = self.loop.create_task(self.bind(pod), name=pod)
        self.settle()

    @rule(pod=st.sampled_from(PODS))
    def a_limit_is_lowered_or_raised(self, pod: str) -> None:
        """From its next verdict on the pod is refused, or no longer."""
        self.refused ^= {pod}

    @precondition(lambda self: self.arriving)
    @rule(data=st.data(), happening=st.sampled_from([None, None, None, *Fault]))
    def a_request_arrives(self, data: st.DataObject, happening: Happening) -> None:
        self.go_on(data.draw(st.sampled_from(sorted(self.arriving))), happening)

    def go_on(self, pod: str, happening: Happening = None) -> None:
        self.arriving.pop(pod).set_result(happening)
        self.settle()

    @invariant()
    def whoever_is_bound_keeps_its_owner(self) -> None:
        if not self.server.bound:
            return
        if self.owner_when_bound is None:
            self.owner_when_bound = self.server.owner()
        assert self.server.owner() == self.owner_when_bound
        assert self.server.owner()[0] in {"a", "b"}
        assert len(self.server.bound) == len(set(self.server.bound))

    def teardown(self) -> None:
        """Whatever happened so far: it ends well as soon as nothing goes wrong any more."""
        self.refused.clear()
        for _ in range(100):
            if not self.tasks and all(map(self.is_bound, PODS)):
                break
            for pod in self.may_ask():
                if not self.is_bound(pod):
                    self.ask(pod)
            for pod in sorted(self.arriving):
                self.go_on(pod)
                self.whoever_is_bound_keeps_its_owner()
        self.loop.close()
        assert not self.tasks
        assert sorted(self.server.bound) == ["uid-of-a", "uid-of-b"]
        for pod in PODS:
            assert self.server.pod(pod)["metadata"]["annotations"] == {QUEUE: pod}


def test_every_history_of_two_binds_ends_with_one_owner() -> None:
    run_state_machine_as_test(Binds, settings=settings(stateful_step_count=30))
