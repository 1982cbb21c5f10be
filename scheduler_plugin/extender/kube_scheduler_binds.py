"""Bind, the truth: a pod is bound after a fresh look, a verdict, and the owner on every claim.

    Bind ──► fresh? ──► verdict ──► owners written ──► binding
                 └─────── claims changed ◄──┘

While the owner of a claim is being written, other pods of that claim wait: they would write the
same and be refused for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime

from kube.api import ApiError, KeyLocks, naming
from scheduler_plugin.accounting.freshness import (
    awaits_claims,
    claims_to_read,
    owned_claims,
    stand,
    unowned_claims,
)
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.kube_scheduler_unknown_binds import UnknownBinds
from scheduler_plugin.extender.messages import BindArguments
from scheduler_plugin.extender.prometheus_calls import WATCH_LAG_SECONDS
from scheduler_plugin.judging.verdicts import (
    Admitted,
    Refused,
    assume,
    bind_request,
    judge,
    missing_refusal,
)
from scheduler_plugin.objects.bindings import (
    BindFailed,
    BindRequest,
    CarriesOut,
    ClaimOwner,
    ClaimsChanged,
)
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.waiting.away.resting_pods import RestingPods

logger = logging.getLogger(__name__)

WATCH_SECONDS = 0.5
"""How long the watch may take to bring what kube-scheduler wrote before it asked.

Where it lags, the API server is busy, and a read for every bind would make it busier.
"""

MOST_PASSED = 10_000
"""Pods that the Filter passed: more than kube-scheduler can have on their way."""

ATTEMPTS = 5
"""How often a verdict is made anew because somebody else wrote a claim first."""


class Binds:
    """The bindings under way.

    Attributes:
        unknown: Those of which no answer told the end; they are to be looked at.
    """

    def __init__(
        self,
        cluster: ClusterWorld,
        binder: CarriesOut,
        held: HeldDevices,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._cluster = cluster
        self._binder = binder
        self._held = held
        self._clock = clock
        self._monotonic = monotonic
        self._writing: KeyLocks[ClaimUid] = KeyLocks()
        self._failures = RestingPods()
        # How often the Filter passed each pod since it was bound last, if ever.
        self._passes: dict[PodUid, int] = {}
        self.unknown = UnknownBinds(cluster, monotonic)

    def passed(self, pod: PodUid) -> None:
        """The Filter passed a pod: an attempt to bind it begins."""
        self._passes[pod] = self._passes.pop(pod, 0) + 1
        if len(self._passes) > MOST_PASSED:
            del self._passes[next(iter(self._passes))]

    def why_not_tried(self, pod: PodView, now: datetime) -> str:
        """Why a pod rests whose last bindings failed, as a sentence; "" where it does not.

        The room that it would hold until it fails again is for others.
        """
        why = self._failures.why_not(pod.uid, self._monotonic(), now)
        return f"{pod} rests. {why}" if why else ""

    async def bind(self, arguments: BindArguments) -> str:
        """Returns why the pod is not bound, "" where it is.

        What Filter was told of the pod is not believed here: who asks may have invented it.
        """
        try:
            return await self._bind(arguments)
        except ApiError as error:
            return f"Pod {arguments.namespace}/{arguments.name} is not bound yet: {error}"

    async def _bind(self, arguments: BindArguments) -> str:
        pod = await self._fresh_pod(arguments)
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
            await self._take_back(pod, node, written)
            raise
        if isinstance(outcome, BindRequest):
            return await self._carry_out(pod, outcome)
        await self._take_back(pod, node, written)
        return outcome

    async def _write_judged(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> BindRequest | str:
        """Judge and write the owners until both agree; what is to be bound then, or why not.

        Each owner that this Bind wrote, or may have, is entered into `written`.
        """
        if why := await self._reread(pod):
            return why
        facts = self._cluster.world.facts
        # Nobody tells of namespaces and PodGroups by UID: any change may be the one.
        await self._is_or_becomes(lambda: not facts.awaits(pod), ())
        for _ in range(ATTEMPTS):
            if why := await self._freshen(pod):
                return why
            match await self._decide(pod, node, written):
                case str() as why:
                    return why
                case BindRequest() as request:
                    return replace(request, claims=_as_found(request.claims, written))
                case ClaimsChanged(claim):
                    await self._cluster.refresh_claim(claim.namespace, claim.name)
                case None:
                    continue
        return f"{pod}: its claims were written by others {ATTEMPTS} times while it was bound."

    async def _decide(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> BindRequest | ClaimsChanged | str | None:
        """Judge for good and write the owners.

        Returns what is to be bound then, or why not; None where it has to be seen afresh.
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

    async def _take_back(
        self, pod: PodView, node: str, written: dict[ClaimUid, ClaimOwner]
    ) -> None:
        """The pod is not bound: an owner that was written for it would be charged for nothing."""
        if written:
            request = bind_request(pod, node, Admitted())
            await self._binder.take_back(replace(request, claims=tuple(written.values())))

    async def _carry_out(self, pod: PodView, request: BindRequest) -> str:
        # Before the write: whatever becomes of this call, the pod may be bound from here on.
        self._cluster.world.assumptions.binding_asked(pod.uid)
        self.unknown.asked(pod)
        outcome = await self._binder.bind(request)
        if isinstance(outcome, BindFailed):
            return self._failed(pod, outcome)
        self.unknown.answered(pod.uid)
        self._failures.forget(pod.uid)
        self._passes.pop(pod.uid, None)
        with naming(claimUIDs=",".join(claim.uid for claim in request.claims)):
            logger.info("bound pod=%s/%s node=%s", pod.namespace, pod.name, request.node)
        return ""

    def _failed(self, pod: PodView, failure: BindFailed) -> str:
        """A binding that may exist after all is still believed, until it shows."""
        if failure.is_certain:
            self._drop(pod)
        logger.warning("not bound pod=%s/%s why=%s", pod.namespace, pod.name, failure.why)
        return failure.why

    def _drop(self, pod: PodView) -> None:
        """It is not bound for certain: nothing is believed of it, and it may have to rest."""
        self.unknown.answered(pod.uid)
        self._cluster.world.assumptions.forget(pod.uid)
        self._failures.failed(pod.uid, self._monotonic())

    async def _fresh_pod(self, arguments: BindArguments) -> PodView | str:
        """The pod as it is now, or why there is none to bind."""
        uid = PodUid(arguments.uid)
        pod = self._cluster.world.facts.pod(uid)
        if pod is None or self._cluster.world.assumptions.awaits_binding(uid):
            pod = await self._cluster.refresh_pod(arguments.namespace, arguments.name)
        name = f"Pod {arguments.namespace}/{arguments.name}"
        if pod is None or pod.uid != uid:
            # The watch may never have shown it: then no event ends what is assumed of it.
            self._cluster.world.assumptions.forget(uid)
        if pod is None:
            return f"{name} does not exist."
        if pod.uid != uid:
            return f"{name} has UID {pod.uid}, not {uid}: it was deleted and made anew."
        if (pod.namespace, pod.name) != (arguments.namespace, arguments.name):
            return f"UID {uid} is that of {pod}, not of {name}."
        if why := why_not_ours(pod, self._cluster.settings):
            return why
        return await self._with_its_claims(pod)

    async def _with_its_claims(self, pod: PodView) -> PodView:
        """The pod as it is once all claims are known that were made for it."""
        facts = self._cluster.world.facts

        def is_known() -> bool:
            known = facts.pod(pod.uid)
            if known is None:
                return True
            is_of_before = known.extended_claim == pod.extended_claim
            is_lost = is_of_before and facts.lost_extended_claim(known)
            return not (is_lost or awaits_claims(known, facts))

        about = () if facts.lost_extended_claim(pod) else (pod.uid,)
        if not await self._is_or_becomes(is_known, about):
            await self._cluster.refresh_pod(pod.namespace, pod.name)
        return await self._without_lost_claim(facts.pod(pod.uid) or pod)

    async def _without_lost_claim(self, pod: PodView) -> PodView:
        """A claim of an earlier attempt is gone for good where a device plugin serves this one."""
        facts = self._cluster.world.facts
        if facts.lost_extended_claim(pod):
            await self._cluster.refresh_claim(pod.namespace, pod.extended_claim)
        return facts.without_lost_claim(pod)

    async def _reread(self, pod: PodView) -> str:
        """Read what an earlier attempt may have left in the stores; why not to go on, or "".

        kube-scheduler takes the reservations of an attempt back that failed, and the next one may
        get other devices. Until the watch shows it, what is known of the first looks fresh.
        """
        if self._passes.get(pod.uid) == 1:
            return ""
        names = owned_claims(pod, self._cluster.world.facts)
        gone = [n for n in names if not await self._cluster.refresh_claim(pod.namespace, n)]
        return _unreserved(pod, gone) if gone else ""

    async def _freshen(self, pod: PodView) -> str:
        """See the pod's reservations; returns what is missing in the API itself, "" for nothing."""
        facts = self._cluster.world.facts
        known = [claim.uid for claim in facts.claims_of(pod)]
        about = known if len(known) == len(pod.claim_names) else ()
        if await self._is_or_becomes(lambda: not claims_to_read(pod, facts), about):
            return ""
        for name in claims_to_read(pod, facts):
            await self._cluster.refresh_claim(pod.namespace, name)
        refused = missing_refusal(pod, facts.claims_of(pod), self._cluster.world)
        if refused is not None:
            return f"{refused.reason}: {refused.sentence}"
        missing = claims_to_read(pod, facts)
        return _unreserved(pod, missing) if missing else ""

    async def _is_or_becomes(self, condition: Callable[[], bool], about: Collection[str]) -> bool:
        began = self._monotonic()
        is_so = condition() or await self._cluster.wait_for(condition, WATCH_SECONDS, about)
        WATCH_LAG_SECONDS.observe(self._monotonic() - began)
        return is_so


def _unreserved(pod: PodView, claims: Collection[str]) -> str:
    named = ", ".join(f"{pod.namespace}/{name}" for name in claims)
    return f"{pod} has no reservation on ResourceClaim {named}, or that has no allocation."


def _as_found(
    claims: Collection[ClaimOwner], written: Mapping[ClaimUid, ClaimOwner]
) -> tuple[ClaimOwner, ...]:
    """The claims as this Bind found them first, so that what it wrote can be taken back."""
    return tuple(written.get(claim.uid, claim) for claim in claims)
