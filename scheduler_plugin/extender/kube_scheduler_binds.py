"""Bind decides: a pod is bound after fresh reads, a verdict, and an owner on every claim.

    Bind ──► fresh? ──► verdict ──► owners written ──► binding
                 └─────── claims changed ◄──┘

While the owner of a claim is written, other pods of that claim wait: their writes would conflict.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime

from kube.calls.api import ApiError
from kube.key_locks import KeyLocks
from kube.processes.api import log_context
from scheduler_plugin.accounting.freshness import (
    claims_to_read,
    stand,
    unowned_claims,
)
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.apiserver_reads import FreshReads
from scheduler_plugin.extender.kube_scheduler_unknown_binds import UnknownBinds
from scheduler_plugin.extender.messages import BindArguments
from scheduler_plugin.judging.verdicts import (
    Admitted,
    Refused,
    assume,
    bind_request,
    judge,
)
from scheduler_plugin.objects.bindings import (
    BinderProtocol,
    BindFailed,
    BindRequest,
    ClaimOwner,
    ClaimsChanged,
)
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.waiting.deferred.pod_backoffs import PodBackoffs

logger = logging.getLogger(__name__)

MOST_PASSED = 10_000
"""Pods that Filter passed and that are remembered: more than kube-scheduler has in flight."""

ATTEMPTS = 5
"""How often a Bind judges again after another writer changed a claim first."""


class Binds:
    """The bindings under way.

    Attributes:
        unknown: Bindings whose outcome is unknown; their pods are read later.
    """

    def __init__(
        self,
        cluster: ClusterWorld,
        binder: BinderProtocol,
        held: HeldDevices,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._cluster = cluster
        self._binder = binder
        self._held = held
        self._clock = clock
        self._monotonic = monotonic
        self._reads = FreshReads(cluster, monotonic)
        self._writing: KeyLocks[ClaimUid] = KeyLocks()
        self._failures = PodBackoffs()
        # How often Filter passed each pod since its last binding.
        self._passes: dict[PodUid, int] = {}
        self.unknown = UnknownBinds(cluster, monotonic)

    def passed(self, pod: PodUid) -> None:
        """Filter passed a pod: an attempt to bind it begins."""
        self._passes[pod] = self._passes.pop(pod, 0) + 1
        if len(self._passes) > MOST_PASSED:
            del self._passes[next(iter(self._passes))]

    def was_passed(self, pod: PodUid) -> bool:
        """Whether Filter passed a pod before, and it was not bound since."""
        return pod in self._passes

    def why_not_tried(self, pod: PodView, now: datetime) -> str:
        """Why a pod is in backoff after failed bindings, as a sentence; "" if it is not.

        During the backoff other pods may use the room that it would hold.
        """
        why = self._failures.why_not(pod.uid, self._monotonic(), now)
        return f"{pod} is in backoff. {why}" if why else ""

    async def bind(self, arguments: BindArguments) -> str:
        """Bind a pod; returns why it is not bound, "" if it is.

        The pod that Filter received is not used here: a client may have invented it.
        """
        try:
            return await self._bind(arguments)
        except ApiError as error:
            return f"Pod {arguments.namespace}/{arguments.name} is not bound yet: {error}"

    async def _bind(self, arguments: BindArguments) -> str:
        pod = await self._reads.pod(arguments)
        if isinstance(pod, str):
            return pod
        if pod.is_bound:
            return "" if pod.node == arguments.node else f"{pod} is bound to {pod.node} already."
        if not pod.may_use_devices:
            return await self._carry_out(pod, bind_request(pod, arguments.node, Admitted()))
        return await self._bind_judged(pod, arguments.node)

    async def _bind_judged(self, pod: PodView, node: str) -> str:
        written: dict[ClaimUid, ClaimOwner] = {}
        try:
            outcome = await self._write_judged(pod, node, written)
        except ApiError:
            await self._roll_back(pod, node, written)
            raise
        if isinstance(outcome, BindRequest):
            return await self._carry_out(pod, outcome)
        await self._roll_back(pod, node, written)
        return outcome

    async def _write_judged(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> BindRequest | str:
        """Judge and write the owners until both agree; returns the request to bind, or why not.

        Each owner that this Bind wrote or may have written is added to `written`.
        """
        is_first = self._passes.get(pod.uid) == 1
        if why := await self._reads.reread(pod, is_first=is_first):
            return why
        await self._reads.await_namespace(pod)
        for _ in range(ATTEMPTS):
            if why := await self._reads.freshen(pod):
                return why
            await self._reads.await_costs(pod)
            match await self._decide(pod, node, written):
                case str() as why:
                    return why
                case BindRequest() as request:
                    return replace(request, claims=_as_found(request.claims, written))
                case ClaimsChanged(claim):
                    await self._cluster.refresh_claim(claim.namespace, claim.name)
                case None:
                    continue
        return f"{pod} is not bound: other writers changed its claims during {ATTEMPTS} attempts."

    async def _decide(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> BindRequest | ClaimsChanged | str | None:
        """Make the final verdict and write the owners.

        Returns the request to bind, or why the pod is not bound; None if it must be judged again.
        """
        world = self._cluster.world
        async with self._writing.of(unowned_claims(pod, world.facts)):
            if claims_to_read(pod, world.facts):
                return None
            now = self._clock()
            claims = world.facts.claims_of(pod)
            world.assumptions.expire(now)
            verdict = judge(pod, claims, world, at_bind=True)
            if isinstance(verdict, Refused):
                self._drop(pod)
                return f"{verdict.reason}: {verdict.sentence}"
            if why := self._held.why_taken(pod, claims, node):
                self._drop(pod)
                return why
            if verdict.claims or verdict.requests:
                assume(pod, verdict, world, now)
            request = bind_request(pod, node, verdict)
            written |= {claim.uid: claim for claim in request.claims if not claim.is_written}
            failure = await self._write_owners(request)
        if isinstance(failure, BindFailed):
            return self._failed(pod, failure)
        return failure or (request if stand(request.claims, world.facts) else None)

    async def _write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        if all(claim.is_written for claim in request.claims):
            return None
        return await self._binder.write_owners(request)

    async def _roll_back(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> None:
        """Remove the owners that this Bind wrote: the pod is not bound, so none may be charged."""
        if written:
            request = bind_request(pod, node, Admitted())
            await self._binder.roll_back(replace(request, claims=tuple(written.values())))

    async def _carry_out(self, pod: PodView, request: BindRequest) -> str:
        # Noted before the write: however this call ends, the pod may be bound from here on.
        self._cluster.world.assumptions.binding_requested(pod.uid)
        self.unknown.requested(pod)
        outcome = await self._binder.bind(request)
        if isinstance(outcome, BindFailed):
            return self._failed(pod, outcome)
        self.unknown.resolved(pod.uid)
        self._failures.forget(pod.uid)
        self._passes.pop(pod.uid, None)
        with log_context(claimUIDs=",".join(claim.uid for claim in request.claims)):
            logger.info("bound pod=%s/%s node=%s", pod.namespace, pod.name, request.node)
        return ""

    def _failed(self, pod: PodView, failure: BindFailed) -> str:
        """Log a failed binding; one that may exist stays assumed until its outcome is known."""
        if failure.is_certain:
            self._drop(pod)
        logger.warning("not bound pod=%s/%s why=%s", pod.namespace, pod.name, failure.why)
        return failure.why

    def _drop(self, pod: PodView) -> None:
        """The pod is certainly not bound: its assumption ends, and its backoff may begin."""
        self.unknown.resolved(pod.uid)
        self._cluster.world.assumptions.forget(pod.uid)
        self._failures.failed(pod.uid, self._monotonic())


def _as_found(
    claims: Collection[ClaimOwner], written: Mapping[ClaimUid, ClaimOwner]
) -> tuple[ClaimOwner, ...]:
    """The claims as this Bind first found them, so that its writes can be undone."""
    return tuple(written.get(claim.uid, claim) for claim in claims)
