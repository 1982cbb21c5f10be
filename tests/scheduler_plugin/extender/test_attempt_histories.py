"""However often a pod is tried, and however late the watch is: it is bound on what is so.

The machine plays kube-scheduler, which allocates a claim that a user labelled with one device or
two, and takes an attempt back that failed; and the API server, whose watch is silent at times. The
queue may have one device.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler_plugin.extender.messages import Passed
from scheduler_plugin.objects.bindings import BindFailed
from scheduler_plugin.objects.claims import Result
from tests.scheduler_plugin.builders import a_claim, a_pod_object, a_queue, pod_uid, put
from tests.scheduler_plugin.extender.test_kube_scheduler import Scene

DEVICE = Result("req", "moorage.dev")

devices = st.integers(1, 2)
pods = st.sampled_from(["a", "b"])


class Attempts(RuleBasedStateMachine):
    """Two pods that share one claim."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.scene = Scene()
        put(self.scene.cluster.world, a_queue("vision", onvif=(1, 1)))
        self.scene.cluster.store(a_claim(queue="vision"))
        for name in ("a", "b"):
            self.scene.pod(name, claims=["cam"], queue="vision")

    def teardown(self) -> None:
        self.loop.close()

    @rule(lags=st.booleans())
    def watch(self, lags: bool) -> None:
        self.scene.cluster.lags = lags
        if not lags:
            self.scene.cluster.catch_up()

    @rule(
        name=pods,
        count=devices,
        fails=st.sampled_from(["", "", "PreBind", "Bind"]),
        silent=st.booleans(),
    )
    def schedule(self, name: str, count: int, fails: str, silent: bool) -> None:
        """One attempt, whose end the watch may not show.

        With PreBind another claim of the pod could not be written, say.
        """
        if self.scene.cluster.pods[name].is_bound:
            return
        body = a_pod_object(name, claims=["cam"], queue="vision")
        if self.scene.extender.filter(body) != Passed():
            return
        self.reserve(name, count)
        if fails == "Bind":
            self.scene.binder.failures.append(BindFailed("the node is gone", is_certain=True))
        if fails == "PreBind" or self.loop.run_until_complete(self.scene.bind(name)):
            self.scene.cluster.lags |= silent
            self.release(name)
        self.scene.binder.failures.clear()

    @rule(
        name=pods,
        counts=st.tuples(devices, devices),
        fails=st.sampled_from(["PreBind", "Bind"]),
        seconds=st.sampled_from([0, 90]),
    )
    def schedule_again(self, name: str, counts: tuple[int, int], fails: str, seconds: int) -> None:
        """An attempt fails unseen, and the next one gets other devices."""
        self.schedule(name, counts[0], fails, True)
        self.wait(seconds)
        self.schedule(name, counts[1], "", False)

    def reserve(self, name: str, count: int) -> None:
        claim = self.scene.cluster.claims["cam"]
        others = tuple(uid for uid in claim.reserved_for if uid != pod_uid(name))
        results = claim.results or (DEVICE,) * count
        reserved = (*others, pod_uid(name))
        self.scene.cluster.store(replace(claim, results=results, reserved_for=reserved))

    def release(self, name: str) -> None:
        """kube-scheduler, or the claims' controller: the last one takes the allocation along."""
        claim = self.scene.cluster.claims["cam"]
        left = tuple(uid for uid in claim.reserved_for if uid != pod_uid(name))
        results = claim.results if left else None
        self.scene.cluster.store(replace(claim, results=results, reserved_for=left))

    @rule(name=pods)
    def end(self, name: str) -> None:
        """A pod that runs goes, and comes back, as from a backup."""
        pod = self.scene.cluster.pods[name]
        if pod.is_bound:
            self.release(name)
            self.scene.binder.bound.pop(name)
            self.scene.cluster.world.delete_pod(pod.uid)
            self.scene.pod(name, claims=["cam"], queue="vision")

    @rule(seconds=st.sampled_from([1, 10, 400]))
    def wait(self, seconds: int) -> None:
        self.scene.now += timedelta(seconds=seconds)

    @invariant()
    def nobody_runs_on_more_than_the_limit(self) -> None:
        if self.scene.binder.bound:
            assert self.scene.cluster.claims["cam"].results == (DEVICE,)


TestAttempts = Attempts.TestCase
TestAttempts.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
