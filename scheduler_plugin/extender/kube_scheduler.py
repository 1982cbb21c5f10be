"""Answers to kube-scheduler: Filter and Preempt from memory, Bind after fresh reads.

Filter advises and Bind decides (`kube_scheduler_binds`). There is no await between a verdict and
the assumption that follows from it, so no other decision comes in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from kube.calls.api import ApiError
from kube.shapes.reading import JsonObject, UnreadableError
from scheduler_plugin.accounting.freshness import costs_are_known
from scheduler_plugin.cluster.apiserver_lookups import ClaimLookups
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.kube_scheduler_binds import Binds
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease
from scheduler_plugin.extender.messages import Answer, BindArguments, NotAnswered, Passed
from scheduler_plugin.judging.gangs import GangAdmitted, is_schedulable, judge_waiting
from scheduler_plugin.judging.verdicts import Refused, assume
from scheduler_plugin.objects.bindings import BinderProtocol
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods

PATIENCE_SECONDS = 5.0
"""How long a call waits until the plugin sees that its kube-scheduler holds the Lease, which it may
have acquired a moment ago. It is well below the time limit of a Bind."""

KNOWN_SECONDS = 0.05
"""How long Filter waits for the watch to bring a claim that kube-scheduler already knows. A refusal
costs the pod about 0.1 s."""


class Extender:
    """Answers kube-scheduler, in one event loop.

    Attributes:
        refusals: The refused pods; each gets a condition when it fits.
        lookups: Reads the claims that pods name and no watch has brought.
    """

    def __init__(
        self,
        cluster: ClusterWorld,
        binder: BinderProtocol,
        lease: KubeSchedulerLease,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._cluster = cluster
        self._lease = lease
        self._clock = clock
        self._held = HeldDevices(cluster.world, cluster.inventory)
        self._binds = Binds(cluster, binder, self._held, clock, monotonic)
        self.refusals = RefusedPods()
        self.lookups = ClaimLookups(cluster.refresh_claim)

    def why_not_ready(self) -> str:
        """Why kube-scheduler is not served, as a sentence; "" if it is served."""
        return self._cluster.why_not_ready() or self._lease.why_not_ready()

    async def look_at_unknown_binds(self) -> None:
        """Read the pods of bindings whose outcome is unknown, once no write can arrive late."""
        await self._binds.unknown.look()

    async def await_lease(self) -> None:
        """Wait until this process certainly holds the Lease, `PATIENCE_SECONDS` at most."""
        await self._lease.await_lease(PATIENCE_SECONDS)

    def filter(self, pod: JsonObject) -> Answer:
        """The verdict on a pod; an admitted pod is assumed from then on."""
        view = self._parsed_pod(pod)
        if isinstance(view, NotAnswered):
            return view
        if self._cluster.world.assumptions.awaits_binding(view.uid):
            # Bind reads the outcome. Until then the pod counts as bound: it may be running.
            self._binds.passed(view.uid)
            self.refusals.answered(view.uid, refused=False)
            return Passed()
        self._cluster.world.assumptions.forget(view.uid)
        if not view.may_use_devices:
            return Passed()
        answer = self._judged(view)
        if not (isinstance(answer, Passed) and answer.kept_off):
            self.refusals.answered(view.uid, refused=isinstance(answer, Refused))
        return answer

    def _judged(self, view: PodView) -> Answer:
        """The verdict; a pod of a gang is admitted with its gang, and all of them are assumed."""
        known = self._cluster.world.facts.pod(view.uid)
        if known is not None and known.is_bound:
            # kube-scheduler has not seen the binding yet; Bind answers with the node.
            return Passed()
        found = self._verdict(view)
        if not isinstance(found, GangAdmitted):
            return found
        world, now = self._cluster.world, self._clock()
        for pod, verdict in found.admitted:
            assume(pod, verdict, world, now)
            if pod.scheduling_group and self._binds.was_passed(pod.uid):
                world.assumptions.expire_soon(pod.uid, now)
        self._binds.passed(view.uid)
        return Passed(self._held.kept_off(view))

    def kept_off(self, uid: PodUid, *, everywhere: bool) -> None:
        """Note that Filter excluded nodes for a pod that it passed.

        With `everywhere` no node is left: the pod is not bound, and its assumption ends.
        """
        if everywhere:
            self._cluster.world.assumptions.forget(uid)
        self.refusals.answered(uid, refused=everywhere)

    def _verdict(self, view: PodView) -> GangAdmitted | Refused | NotAnswered:
        """The verdict on a pod; `NotAnswered` if the pod is not to be tried now."""
        world, now = self._cluster.world, self._clock()
        if not world.may_be_bound(view.uid):
            return NotAnswered(f"{view} ended, or was deleted.")
        if world.assumptions.awaits_binding(view.uid):
            return NotAnswered(f"{view} may be bound: the outcome of its binding is not known yet.")
        if why := self._binds.why_not_tried(view, now):
            return NotAnswered(why)
        world.assumptions.expire(now)
        return judge_waiting(view, world, self._as_candidate)

    def _as_candidate(self, pod: PodView) -> PodView | None:
        """The pod, if it could be bound with its gang; a gated pod could not.

        The gate is removed from a gang as a whole.
        """
        return pod if is_schedulable(pod, self._cluster.world) else None

    async def filter_once_known(self, pod: JsonObject) -> Answer:
        """The verdict, after a wait of `KNOWN_SECONDS` if the watch lacks one of the pod's objects.

        A claim that the watch does not bring is read in the background, and the pod is refused:
        kube-scheduler calls for one pod after the other, and must not wait for the API server.
        """
        answer = self.filter(pod)
        if not _is_early(answer):
            return answer
        view = self._cluster.read_pod(pod)
        facts = self._cluster.world.facts
        keys = [(view.namespace, entry.claim) for entry in view.claims if entry.claim]

        def unknown() -> list[tuple[str, str]]:
            return [key for key in keys if facts.claim_named(*key) is None]

        def is_known() -> bool:
            return not (unknown() or facts.awaits(view)) and costs_are_known(view, facts)

        await self._cluster.wait_for(is_known, KNOWN_SECONDS, ())
        answer = self.filter(pod)
        if _is_early(answer):
            self.lookups.add(unknown())
        return answer

    def preempt(self, pod: JsonObject) -> Answer:
        """The verdict on a pod that no node fits: no pod is evicted for one that Filter refuses.

        Nor is one evicted for a bound pod whose binding kube-scheduler has not seen yet.
        """
        view = self._parsed_pod(pod)
        if isinstance(view, NotAnswered):
            return view
        if not view.may_use_devices:
            return Passed()
        found = self._verdict(view)
        return Passed() if isinstance(found, GangAdmitted) else found

    async def bind(self, arguments: BindArguments) -> str:
        """Bind a pod; returns why it is not bound, "" if it is. The call may be repeated."""
        await self.await_lease()
        if why := self.why_not_ready():
            return why
        return await self._binds.bind(arguments)

    async def is_bound(self, arguments: BindArguments) -> bool:
        """Whether the API server says that the pod has a node; any process may have bound it."""
        try:
            pod = await self._cluster.refresh_pod(arguments.namespace, arguments.name)
        except ApiError:
            return False
        return pod is not None and pod.uid == arguments.uid and pod.is_bound

    def _parsed_pod(self, pod: JsonObject) -> PodView | NotAnswered:
        if why := self.why_not_ready():
            return NotAnswered(why)
        try:
            view = self._cluster.read_pod(pod)
        except UnreadableError as error:
            return NotAnswered(f"Pod: {error}")
        if why := why_not_ours(view, self._cluster.settings):
            return NotAnswered(why)
        # A claim for extended resources belongs to a failed attempt: this one creates another.
        return view.without_extended_claim() if view.extended_claim else view


def _is_early(answer: Answer) -> bool:
    """Whether the call came before the objects that the pod names were known."""
    return isinstance(answer, Refused) and answer.reason is Reason.NOT_KNOWN_YET
