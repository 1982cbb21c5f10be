"""The facts with their changes: pods and claims are entered and removed."""

from __future__ import annotations

from collections.abc import Iterable

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.group_claims import all_groups, with_group_users
from scheduler_plugin.objects.claims import ClaimView, GroupConsumer
from scheduler_plugin.objects.names import ClaimUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.tables import enter


class Facts(FactsView):
    """Changes the pods, claims and indexes of the facts; events reach them through the books."""

    def put_pod(self, pod: PodView) -> None:
        """Enter a pod; no pod of its UID or its name may be entered."""
        self._pods[pod.uid] = pod
        self._pod_uids[pod.namespace, pod.name] = pod.uid
        self._refer_pod(pod, 1)
        if pod.is_bound and pod.requests and not pod.queue_is_bound:
            self._unjudged[pod.uid] = None
        if pod.is_bound and pod.deleting:
            self._terminating[pod.uid] = None

    def remove_pod(self, pod: PodView) -> None:
        """Remove a pod, which must be entered."""
        del self._pods[pod.uid]
        del self._pod_uids[pod.namespace, pod.name]
        self._refer_pod(pod, -1)
        self._unjudged.pop(pod.uid, None)
        self._terminating.pop(pod.uid, None)

    def _refer_pod(self, pod: PodView, sign: int) -> None:
        group = [(pod.namespace, pod.group)] if pod.group else []
        enter(self._naming, {(pod.namespace, name) for name in pod.claim_names}, pod.uid, sign)
        enter(self._in_namespace, [pod.namespace], pod.uid, sign)
        enter(self._in_group, group, pod.uid, sign)
        enter(self._of_resource, [resource for resource, _ in pod.requests], pod.uid, sign)

    def put_claim(self, claim: ClaimView) -> None:
        """Enter a claim; no claim of its UID or its name may be entered."""
        if groups := all_groups(claim):
            self._refer_groups(claim, groups, 1)
            claim = with_group_users(claim, self.pods_naming(claim), self.pod_queues)
        self._claims[claim.uid] = claim
        self._claim_uids[claim.key] = claim.uid
        self._gone_claims.pop(claim.key, None)
        self._refer_claim(claim, 1)

    def _refer_groups(self, claim: ClaimView, groups: Iterable[GroupConsumer], sign: int) -> None:
        names = {(claim.namespace, group.name) for group in groups}
        enter(self._of_group, names, claim.uid, sign)

    def regroup(self, uid: ClaimUid) -> bool:
        """Look again which pods use a claim through its PodGroups; returns whether others do."""
        claim = self._claims.get(uid)
        if claim is None or not all_groups(claim):
            return False
        found = with_group_users(claim, self.pods_naming(claim), self.pod_queues)
        if found == claim:
            return False
        self._refer_claim(claim, -1)
        self._claims[uid] = found
        self._refer_claim(found, 1)
        return True

    def claims_of_group(self, namespace: str, name: str) -> list[ClaimUid]:
        """The claims that are reserved for a PodGroup of this name."""
        return list(self._of_group.get((namespace, name), ()))

    def remove_claim(self, claim: ClaimView) -> None:
        """Remove a claim, which must be entered."""
        self._refer_groups(claim, all_groups(claim), -1)
        del self._claims[claim.uid]
        del self._claim_uids[claim.key]
        self._refer_claim(claim, -1)

    def _refer_claim(self, claim: ClaimView, sign: int) -> None:
        enter(self._consuming, set(claim.reserved_for), claim.uid, sign)
        enter(self._written_for, [claim.owner_pod] if claim.owner_pod else [], claim.uid, sign)
        enter(self._of_class, claim.classes, claim.uid, sign)
        labels = [claim.label] if claim.label and not claim.is_allocated else []
        enter(self._asked_of, labels, claim.uid, sign)
        enter(self._asking_all, claim.classes_asked_whole, claim.uid, sign)
        enter(self._with_device, claim.devices, claim.uid, sign)
        names = {device.name for device in claim.devices if device.driver == DRIVER_NAME}
        enter(self._with_device_named, names, claim.uid, sign)

    def note_gone_claim(self, key: tuple[str, str]) -> None:
        """Note that no claim of this namespace and name exists, until one is entered."""
        if key not in self._claim_uids:
            self._gone_claims[key] = None
