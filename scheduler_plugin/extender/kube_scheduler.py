"""What kube-scheduler asks, answered: Filter and Preempt from memory, Bind after a fresh look.

Filter is advice and Bind is the truth (`kube_scheduler_binds`). A verdict and the assumption that
follows from it are made without an await between them, so that no other decision comes in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from kube.api import ApiError
from kube.shapes.reading import JsonObject, UnreadableError
from scheduler_plugin.cluster.apiserver_lookups import ClaimLookups
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.kube_scheduler_binds import Binds
from scheduler_plugin.extender.kube_scheduler_lease import KubeSchedulerLease
from scheduler_plugin.extender.messages import Answer, BindArguments, NotAnswered, Passed
from scheduler_plugin.judging.gangs import Together, could_come, judge_waiting
from scheduler_plugin.judging.verdicts import Refused, assume
from scheduler_plugin.objects.bindings import CarriesOut
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.waiting.lines.refused_pods import RefusedPods

PATIENCE_SECONDS = 5.0
"""How long kube-scheduler waits for its plugin to see that it may be served; it has taken the Lease
just now, or has lost it and is about to end. Well inside the time that a Bind has."""

KNOWN_SECONDS = 0.05
"""How long the watch may take to bring a claim of which kube-scheduler knows; a tenth of a second
is what a refusal costs its pod."""


class Extender:
    """Answers kube-scheduler. All of it runs in one event loop.

    Attributes:
        refusals: The pods that were refused; they are told when they fit.
        lookups: The claims that pods name and nobody knows; they are to be read.
    """

    def __init__(
        self,
        cluster: ClusterWorld,
        binder: CarriesOut,
        lease: KubeSchedulerLease,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._cluster = cluster
        self._lease = lease
        self._clock = clock
        self._held = HeldDevices(cluster.world, cluster.stock)
        self._binds = Binds(cluster, binder, self._held, clock, monotonic)
        self.refusals = RefusedPods()
        self.lookups = ClaimLookups(cluster.refresh_claim)

    def why_not_ready(self) -> str:
        """Why kube-scheduler is not answered; "" where it is."""
        return self._cluster.why_not_ready() or self._lease.why_not_ready()

    async def look_at_unknown_binds(self) -> None:
        """Look what became of bindings of which no answer told it, once they cannot come late."""
        await self._binds.unknown.look()

    async def settle(self) -> None:
        """Wait a moment for the Lease to be ours for certain."""
        await self._lease.settle(PATIENCE_SECONDS)

    def filter(self, pod: JsonObject) -> Answer:
        """The verdict on a pod; one that is admitted holds an assumption from then on."""
        view = self._asked_about(pod)
        if isinstance(view, NotAnswered):
            return view
        if self._cluster.world.assumptions.awaits_binding(view.uid):
            # Bind looks what became of it. Until then it counts: it may be running.
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
        """One that goes with others is admitted with them, and room is kept for all."""
        known = self._cluster.world.facts.pod(view.uid)
        if known is not None and known.is_bound:
            # kube-scheduler has not heard of it; Bind will tell it where.
            return Passed()
        found = self._verdict(view)
        if not isinstance(found, Together):
            return found
        for pod, verdict in found.admitted:
            assume(pod, verdict, self._cluster.world, self._clock())
        self._binds.passed(view.uid)
        return Passed(self._held.kept_off(view))

    def kept_off(self, uid: PodUid, *, everywhere: bool) -> None:
        """A pod that was passed was kept off some nodes.

        Where no other was left it is not on its way, and what it would get is others'.
        """
        if everywhere:
            self._cluster.world.assumptions.forget(uid)
        self.refusals.answered(uid, refused=everywhere)

    def _verdict(self, view: PodView) -> Together | Refused | NotAnswered:
        """The verdict on a pod; no answer where it is not to be tried now."""
        world, now = self._cluster.world, self._clock()
        if not world.may_be_bound(view.uid):
            return NotAnswered(f"{view} ended, or was deleted.")
        if world.assumptions.awaits_binding(view.uid):
            return NotAnswered(f"{view} may be bound: it is not seen yet what became of it.")
        if why := self._binds.why_not_tried(view, now):
            return NotAnswered(why)
        world.assumptions.expire(now)
        return judge_waiting(view, world, self._may_come)

    def _may_come(self, pod: PodView) -> PodView | None:
        """Those at the gate do not: it lets go of a group as a whole."""
        return pod if could_come(pod, self._cluster.world) else None

    async def filter_once_known(self, pod: JsonObject) -> Answer:
        """The same; where the watch has not brought what it is about, after a moment.

        A claim that does not come is read beside it, and the pod is refused: kube-scheduler asks
        about one pod after the other, and must not wait for the API server.
        """
        answer = self.filter(pod)
        if not _is_early(answer):
            return answer
        view = self._cluster.read_pod(pod)
        facts = self._cluster.world.facts
        keys = [(view.namespace, entry.claim) for entry in view.claims if entry.claim]

        def unknown() -> list[tuple[str, str]]:
            return [key for key in keys if facts.claim_named(*key) is None]

        await self._cluster.wait_for(
            lambda: not unknown() and not facts.awaits(view), KNOWN_SECONDS, ()
        )
        answer = self.filter(pod)
        if _is_early(answer):
            self.lookups.ask(unknown())
        return answer

    def preempt(self, pod: JsonObject) -> Answer:
        """The verdict on a pod that found no room: unless the Filter passes it nobody shall leave.

        Nor for one that is bound already, of which kube-scheduler has not heard.
        """
        view = self._asked_about(pod)
        if isinstance(view, NotAnswered):
            return view
        if not view.may_use_devices:
            return Passed()
        found = self._verdict(view)
        return Passed() if isinstance(found, Together) else found

    async def bind(self, arguments: BindArguments) -> str:
        """Bind a pod; returns why it is not bound, "" where it is. May be asked twice."""
        await self.settle()
        if why := self.why_not_ready():
            return why
        return await self._binds.bind(arguments)

    async def is_bound(self, arguments: BindArguments) -> bool:
        """Whether the pod has a node by now, whoever gave it one; asks the API server."""
        try:
            pod = await self._cluster.refresh_pod(arguments.namespace, arguments.name)
        except ApiError:
            return False
        return pod is not None and pod.uid == arguments.uid and pod.is_bound

    def _asked_about(self, pod: JsonObject) -> PodView | NotAnswered:
        if why := self.why_not_ready():
            return NotAnswered(why)
        try:
            view = self._cluster.read_pod(pod)
        except UnreadableError as error:
            return NotAnswered(f"Pod: {error}")
        if why := why_not_ours(view, self._cluster.settings):
            return NotAnswered(why)
        # A claim for its extended resources is of an attempt that failed: there will be another.
        return view.without_extended_claim() if view.extended_claim else view


def _is_early(answer: Answer) -> bool:
    """Whether it was asked before what it is about was known."""
    return isinstance(answer, Refused) and answer.reason is Reason.NOT_KNOWN_YET
