"""What a Bind reads: the pod and its claims as they are now, by the watch or by a read."""

from __future__ import annotations

from collections.abc import Callable, Collection

from scheduler_plugin.accounting.freshness import awaits_claims, claims_to_read, owned_claims
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.messages import BindArguments
from scheduler_plugin.extender.prometheus_calls import WATCH_LAG_SECONDS
from scheduler_plugin.judging.verdicts import missing_refusal
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours

WATCH_SECONDS = 0.5
"""How long the watch may take to bring what kube-scheduler wrote before it asked.

Where it lags, the API server is busy, and a read for every bind would make it busier.
"""


class FreshReads:
    """Waits for the watch, and reads what it does not bring."""

    def __init__(self, cluster: ClusterWorld, monotonic: Callable[[], float]) -> None:
        self._cluster = cluster
        self._monotonic = monotonic

    async def pod(self, arguments: BindArguments) -> PodView | str:
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

    async def reread(self, pod: PodView) -> str:
        """Read what an earlier attempt may have left in the stores; why not to go on, or "".

        kube-scheduler takes the reservations of an attempt back that failed, and the next one may
        get other devices. Until the watch shows it, what is known of the first looks fresh.
        """
        names = owned_claims(pod, self._cluster.world.facts)
        gone = [n for n in names if not await self._cluster.refresh_claim(pod.namespace, n)]
        return _unreserved(pod, gone) if gone else ""

    async def freshen(self, pod: PodView) -> str:
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

    async def await_namespace(self, pod: PodView) -> None:
        """Wait for the pod's namespace and PodGroup."""
        facts = self._cluster.world.facts
        # Nobody tells of namespaces and PodGroups by UID: any change may be the one.
        await self._is_or_becomes(lambda: not facts.awaits(pod), ())

    async def _is_or_becomes(self, condition: Callable[[], bool], about: Collection[str]) -> bool:
        began = self._monotonic()
        is_so = condition() or await self._cluster.wait_for(condition, WATCH_SECONDS, about)
        WATCH_LAG_SECONDS.observe(self._monotonic() - began)
        return is_so


def _unreserved(pod: PodView, claims: Collection[str]) -> str:
    named = ", ".join(f"{pod.namespace}/{name}" for name in claims)
    return f"{pod} has no reservation on ResourceClaim {named}, or that has no allocation."
