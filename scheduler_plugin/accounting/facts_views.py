"""The objects that decide about charges, with their references to each other: the read-only view.

Indexes find objects by what refers to them, so that an event costs as much as its object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping

from cachetools import FIFOCache

from scheduler_plugin.accounting.group_claims import stands
from scheduler_plugin.accounting.queues.pod_queues import PodQueues
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.objects.claims import ClaimView, ClassName, DeviceId, GroupConsumer
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.open_looks import OpenLooks
from scheduler_plugin.objects.names import NO_QUEUE, AccountingSettings, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView, oldest
from scheduler_plugin.objects.tables import Index

MOST_GONE = 10_000
"""How many deleted claims are remembered: more than pending pods name."""


class FactsView:
    """Pods and claims with their indexes, the objects that decide queues, tree and catalog."""

    def __init__(
        self, settings: AccountingSettings, may_have_node: Callable[[PodUid], bool]
    ) -> None:
        """`may_have_node` says whether a pod's binding was requested and is not visible yet."""
        self.settings = settings
        self.may_have_node = may_have_node
        self.tree = QueueTree()
        self.catalog = Catalog(self.tree.lists, self.tree.definitions)
        self.pod_queues, self.open_looks = PodQueues(settings), OpenLooks()
        self._pods: dict[PodUid, PodView] = {}
        self._pod_uids: dict[tuple[str, str], PodUid] = {}
        self._claims: dict[ClaimUid, ClaimView] = {}
        self._claim_uids: dict[tuple[str, str], ClaimUid] = {}
        self._gone_claims = FIFOCache[tuple[str, str], None](MOST_GONE)
        # Claims that are reserved for a PodGroup of this name, known or not.
        self._of_group: Index[tuple[str, str], ClaimUid] = {}
        self._naming: Index[tuple[str, str], PodUid] = {}
        self._consuming: Index[PodUid, ClaimUid] = {}
        self._written_for: Index[PodUid, ClaimUid] = {}
        self._of_class: Index[ClassName, ClaimUid] = {}
        # Claims that are not allocated, by the queue of their label.
        self._asked_of: Index[QueueName, ClaimUid] = {}
        self._asking_all: Index[ClassName, ClaimUid] = {}
        self._with_device: Index[DeviceId, ClaimUid] = {}
        self._with_device_named: Index[str, ClaimUid] = {}
        self._in_namespace: Index[str, PodUid] = {}
        self._in_group: Index[tuple[str, str], PodUid] = {}
        self._of_resource: Index[str, PodUid] = {}
        self._unjudged: dict[PodUid, None] = {}
        self._terminating: dict[PodUid, None] = {}

    # Pods.

    def pod(self, uid: PodUid) -> PodView | None:
        return self._pods.get(uid)

    def pod_named(self, namespace: str, name: str) -> PodView | None:
        uid = self._pod_uids.get((namespace, name))
        return self._pods[uid] if uid is not None else None

    def pods(self) -> Iterator[PodView]:
        return iter(self._pods.values())

    def pods_naming(self, claim: ClaimView) -> list[PodView]:
        return [self._pods[uid] for uid in self._naming.get(claim.key, ())]

    def is_named_twice(self, claim: ClaimView) -> bool:
        """Whether more than one pod names the claim."""
        return len(self._naming.get(claim.key, ())) > 1

    def pods_in_namespace(self, namespace: str) -> list[PodUid]:
        return list(self._in_namespace.get(namespace, ()))

    def pods_in_group(self, group: tuple[str, str]) -> list[PodUid]:
        return list(self._in_group.get(group, ()))

    def pods_by_resource(self) -> Mapping[str, Iterable[PodUid]]:
        return self._of_resource

    def pods_unjudged(self) -> list[PodUid]:
        """The bound pods with requests that Moorage did not judge."""
        return list(self._unjudged)

    def admitted_by(self, queue: QueueName) -> Iterator[PodUid]:
        """The pods whose charge depends on which namespaces the queue admits, without its own.

        These are the pods that Moorage did not judge, and those that name an unallocated claim with
        the queue's label.
        """
        yield from self._unjudged
        for uid in self._asked_of.get(queue, ()):
            yield from (pod.uid for pod in self.pods_naming(self._claims[uid]))

    def terminating_pods(self) -> Collection[PodUid]:
        """The terminating pods that have a node."""
        return self._terminating.keys()

    # Claims.

    def claim(self, uid: ClaimUid) -> ClaimView | None:
        return self._claims.get(uid)

    def claim_named(self, namespace: str, name: str) -> ClaimView | None:
        uid = self._claim_uids.get((namespace, name))
        return self._claims[uid] if uid is not None else None

    def is_gone_claim(self, key: tuple[str, str]) -> bool:
        """Whether it is known that no such claim exists; otherwise it may appear."""
        return key in self._gone_claims

    def claims(self) -> Iterator[ClaimView]:
        return iter(self._claims.values())

    def claims_of(self, pod: PodView) -> tuple[ClaimView, ...]:
        """The known claims that a pod names, in the order of its spec."""
        found = (self.claim_named(pod.namespace, name) for name in pod.claim_names)
        return tuple(claim for claim in found if claim is not None)

    def lost_extended_claim(self, pod: PodView) -> bool:
        """Whether the claim for the pod's extended resources is missing."""
        name = pod.extended_claim
        return bool(name) and self.claim_named(pod.namespace, name) is None

    def without_lost_claim(self, pod: PodView) -> PodView:
        """The pod without the claim for its extended resources, if that claim is missing."""
        return pod.without_extended_claim() if self.lost_extended_claim(pod) else pod

    def pods_covered_by(self, claim: ClaimView) -> list[PodUid]:
        """The pods whose extended resources this claim, or another of its name, is made for."""
        return [pod.uid for pod in self.pods_naming(claim) if pod.extended_claim == claim.name]

    def claims_consumed_by(self, uid: PodUid) -> list[ClaimUid]:
        return list(self._consuming.get(uid, ()))

    def claims_written_for(self, uid: PodUid) -> list[ClaimUid]:
        """The claims whose owner the binder wrote for this pod."""
        return list(self._written_for.get(uid, ()))

    def claims_of_class(self, name: ClassName) -> list[ClaimUid]:
        return list(self._of_class.get(name, ()))

    def devices_in_use(self) -> KeysView[DeviceId]:
        """All devices that are allocated to claims."""
        return self._with_device.keys()

    def drivers_allocated_through(self, name: ClassName) -> Iterator[str]:
        """The drivers of the devices of claims that ask for this class only."""
        claims = (self._claims[uid] for uid in self._of_class.get(name, ()))
        only = (claim for claim in claims if claim.results and len(claim.classes) == 1)
        return (result.driver for claim in only for result in claim.results or ())

    def classes_asked(self) -> list[ClassName]:
        """The classes that claims ask for."""
        return list(self._of_class)

    def classes_asked_whole(self) -> list[ClassName]:
        """The classes whose devices some claim requests all of (allocation mode All)."""
        return list(self._asking_all)

    def claims_asking_for_all(self, name: ClassName) -> list[ClaimUid]:
        return list(self._asking_all.get(name, ()))

    def claims_with(self, device: DeviceId) -> Iterator[ClaimView]:
        """The claims that a device, or a part of it, is allocated to."""
        return (self._claims[uid] for uid in self._with_device.get(device, ()))

    def claims_with_device_named(self, name: str) -> list[ClaimUid]:
        """The claims that have a device of Moorage's driver with this name, in any pool."""
        return list(self._with_device_named.get(name, ()))

    def consumers(self, claim: ClaimView) -> Iterator[PodView]:
        """The known pods that the claim is reserved for, the earliest first."""
        found = (self._pods.get(uid) for uid in claim.reserved_for)
        return (pod for pod in found if pod is not None)

    def is_reserved_for(self, claim: ClaimView, pod: PodView) -> bool:
        """Whether a claim is reserved for a pod, or for its PodGroup."""
        return pod.uid in claim.reserved_for or self.is_reserved_for_group(claim, pod)

    def is_reserved_for_uid(self, claim: ClaimView, uid: PodUid) -> bool:
        """Whether a claim is reserved for a pod, or for its PodGroup, and the pod may be bound."""
        if uid in claim.reserved_for:
            return True
        pod = self._pods.get(uid) if claim.groups else None
        return pod is not None and pod.may_be_bound and self.is_reserved_for_group(claim, pod)

    def is_reserved_for_group(self, claim: ClaimView, pod: PodView) -> bool:
        """Whether a pod names a claim that is reserved for the pod's PodGroup."""
        if not claim.groups or claim.name not in pod.claim_names:
            return False
        return pod.namespace == claim.namespace and pod.scheduling_group in self._standing(claim)

    def entry_to_come(self, claim: ClaimView, pod: PodView) -> str:
        """UID of the entry by which kube-scheduler will reserve a claim for a pod.

        It is that of the pod's PodGroup if the group lists the claim; "" if the claim is reserved
        for the pod.
        """
        if self.is_reserved_for(claim, pod):
            return ""
        group = self.pod_queues.own_group(pod.namespace, pod.scheduling_group)
        return group.uid if group is not None and group.lists(claim.name, pod) else pod.uid

    def reserving(self, claim: ClaimView) -> tuple[PodView, ...]:
        """The consumers of a claim, and after them the waiting pods of its PodGroups."""
        return (*self.consumers(claim), *self._waiting_members(claim))

    def groups_without_users(
        self, claim: ClaimView, *, or_nominated: bool = True
    ) -> tuple[GroupConsumer, ...]:
        """The PodGroups that a claim is reserved for and no pod uses it through.

        Only names are compared: pods may run while their PodGroup was deleted, or created anew.

        Args:
            claim: The claim.
            or_nominated: Whether nominated pods count as users. A pod is nominated until it is
                bound: kube-scheduler may wait for minutes until devices and volumes are ready.
        """
        naming = self.pods_naming(claim) if claim.groups else ()
        users = (p for p in naming if _uses(p) or (or_nominated and _is_nominated(p)))
        used = {pod.scheduling_group for pod in users}
        return tuple(group for group in claim.groups if group.name not in used)

    def _waiting_members(self, claim: ClaimView) -> list[PodView]:
        naming = self.pods_naming(claim) if claim.groups else ()
        waiting = (pod for pod in naming if pod.may_be_bound)
        return oldest(pod for pod in waiting if self.is_reserved_for_group(claim, pod))

    def _standing(self, claim: ClaimView) -> set[str]:
        """The names of the PodGroups that a claim is reserved for."""
        queues = self.pod_queues
        return {g.name for g in claim.groups if stands(g, claim.namespace, queues)}

    # Queues of pods.

    @property
    def namespaces(self) -> Mapping[str, NamespaceView]:
        return self.pod_queues.namespaces

    def group(self, namespace: str, name: str) -> PodGroupView | None:
        return self.pod_queues.group(namespace, name)

    def groups_named(self) -> list[tuple[str, str]]:
        """The PodGroups that pods name, whether they exist or not."""
        return list(self._in_group)

    def queue_of(self, pod: PodView) -> QueueName:
        """The queue of a pod, whether it exists or not; "" for none, or while it is unknown."""
        return self.pod_queues.queue_of(pod)

    def knows_queue_of(self, pod: PodView) -> bool:
        """Whether the pod's queue is known, "none" included."""
        return self.pod_queues.knows_queue_of(pod)

    def charged_queue(self, pod: PodView) -> QueueName:
        """The queue that a bound pod's requests are charged to; "" for none.

        The queue of its binding was judged. Any other source of the queue may have been written
        without a verdict: then the pod's namespace must be allowed to use the queue.
        """
        queue = self.queue_of(pod)
        return queue if pod.queue_is_bound or self.may_use(pod, queue) else NO_QUEUE

    def waits_in(self, uid: PodUid) -> QueueName:
        """The queue of a pod that may still be bound, allowed or not; "" for any other pod."""
        pod = self.pod(uid)
        return self.queue_of(pod) if pod is not None and pod.may_be_bound else NO_QUEUE

    def awaits(self, pod: PodView) -> bool:
        """Whether the pod's queue, or the pod's right to use it, is not known yet."""
        return self.pod_queues.awaits(pod)

    def may_use(self, pod: PodView, queue: QueueName) -> bool:
        """Whether the queue exists and admits the pod's namespace, which must be known."""
        namespace = self.namespaces.get(pod.namespace)
        found = self.tree.get(queue)
        return found is not None and namespace is not None and found.admits(namespace.labels)


def _uses(pod: PodView) -> bool:
    return pod.is_bound and not pod.ended


def _is_nominated(pod: PodView) -> bool:
    return pod.may_be_bound and bool(pod.nominated)
