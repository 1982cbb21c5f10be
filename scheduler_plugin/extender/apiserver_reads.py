"""What a Bind reads: the current pod and its claims, from the watch or by a read."""

from __future__ import annotations

from collections.abc import Callable, Collection

from scheduler_plugin.accounting.freshness import (
    awaits_claims,
    claims_to_read,
    costs_are_known,
    owned_claims,
    owned_group_claims,
)
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.extender.messages import BindArguments
from scheduler_plugin.extender.prometheus_calls import WATCH_LAG_SECONDS
from scheduler_plugin.judging.verdicts import missing_refusal
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours

WATCH_SECONDS = 0.5
"""How long a Bind waits for the watch to bring what kube-scheduler wrote before the call.

A watch lags where the API server is busy, and a read for every Bind would add to its load.
"""


class FreshReads:
    """Waits for the watch, and reads from the API server what the watch does not bring in time."""

    def __init__(self, cluster: ClusterWorld, monotonic: Callable[[], float]) -> None:
        self._cluster = cluster
        self._monotonic = monotonic

    async def pod(self, arguments: BindArguments) -> PodView | str:
        """The current pod, or a sentence that says why there is no pod to bind."""
        uid = PodUid(arguments.uid)
        pod = self._cluster.world.facts.pod(uid)
        if pod is None or self._cluster.world.assumptions.awaits_binding(uid):
            pod = await self._cluster.refresh_pod(arguments.namespace, arguments.name)
        name = f"Pod {arguments.namespace}/{arguments.name}"
        if pod is None or pod.uid != uid:
            # The watch may never have brought the pod: then no event ends its assumption.
            self._cluster.world.assumptions.forget(uid)
        if pod is None:
            return f"{name} does not exist."
        if pod.uid != uid:
            return f"{name} has UID {pod.uid}, not {uid}: it was deleted and created again."
        if (pod.namespace, pod.name) != (arguments.namespace, arguments.name):
            return f"UID {uid} belongs to {pod}, not to {name}."
        if why := why_not_ours(pod, self._cluster.settings):
            return why
        return await self._with_its_claims(pod)

    async def _with_its_claims(self, pod: PodView) -> PodView:
        """The pod, once all claims that were created for it are known."""
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
        """The pod without the claim of an earlier attempt, if that claim was deleted.

        It stays deleted where a device plugin serves this attempt.
        """
        facts = self._cluster.world.facts
        if facts.lost_extended_claim(pod):
            await self._cluster.refresh_claim(pod.namespace, pod.extended_claim)
        return facts.without_lost_claim(pod)

    async def reread(self, pod: PodView, *, is_first: bool) -> str:
        """Read again the claims that an earlier attempt used; returns why Bind must stop, or "".

        kube-scheduler removes the reservations of a failed attempt, and the next attempt may get
        other devices. The stores look up to date with the first attempt until the watch brings the
        second. An earlier attempt is that of any pod of the group for which a claim is reserved.
        """
        facts = self._cluster.world.facts
        names = (owned_group_claims if is_first else owned_claims)(pod, facts)
        gone = [n for n in names if not await self._cluster.refresh_claim(pod.namespace, n)]
        return _unreserved(pod, gone) if gone else ""

    async def freshen(self, pod: PodView) -> str:
        """Wait for the pod's reservations, or read them; returns what is missing, or ""."""
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
        return _unreserved(pod, missing, self._unknown_group(pod)) if missing else ""

    def _unknown_group(self, pod: PodView) -> str:
        """Why the reservation of a claim of the pod is not understood, as a sentence; or ""."""
        for claim in self._cluster.world.facts.claims_of(pod):
            for group in claim.unknown_groups:
                return (
                    f" {claim} is reserved for PodGroup {pod.namespace}/{group.name}, which is not"
                    " known: the cluster must serve podgroups.scheduling.k8s.io (features"
                    " GenericWorkload and DRAWorkloadResourceClaims), and --pod-groups list them."
                )
        return ""

    async def await_namespace(self, pod: PodView) -> None:
        """Wait until the pod's namespace and PodGroup are known, `WATCH_SECONDS` at most."""
        facts = self._cluster.world.facts
        # Changes of namespaces and PodGroups have no UID, so every change is looked at.
        await self._is_or_becomes(lambda: not facts.awaits(pod), ())

    async def await_costs(self, pod: PodView) -> None:
        """Wait until it is known what the pod's claims cost, `WATCH_SECONDS` at most."""
        facts = self._cluster.world.facts
        if not costs_are_known(pod, facts):
            claims = [claim.uid for claim in facts.claims_of(pod)]
            await self._cluster.wait_for(lambda: costs_are_known(pod, facts), WATCH_SECONDS, claims)

    async def _is_or_becomes(self, condition: Callable[[], bool], about: Collection[str]) -> bool:
        began = self._monotonic()
        is_so = condition() or await self._cluster.wait_for(condition, WATCH_SECONDS, about)
        WATCH_LAG_SECONDS.observe(self._monotonic() - began)
        return is_so


def _unreserved(pod: PodView, claims: Collection[str], why: str = "") -> str:
    named = ", ".join(f"{pod.namespace}/{name}" for name in claims)
    return f"ResourceClaim {named} has no allocation, or is not reserved for {pod}.{why}"
