"""Everything that a verdict looks at, kept up to date by events.

    event ──► facts ──which entries follow from what changed──► ledger ──► assumptions

An event is the object as it is now, or that it is gone; it may come twice and in any order
between kinds. Whoever holds a world feeds it every event and asks it from one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from scheduler_plugin.amounts import ResourceKey
from scheduler_plugin.assumptions import Assumptions
from scheduler_plugin.claims import ClaimView, ClassName
from scheduler_plugin.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.facts import Facts
from scheduler_plugin.ledger import Ledger, claim_entry, pod_entry
from scheduler_plugin.names import AccountingSettings, ClaimUid, PodUid, Queue, QueueName
from scheduler_plugin.pods import NamespaceView, PodGroupView, PodView


class World:
    """The facts, the ledger that follows from them, and the assumptions beside it."""

    def __init__(self, settings: AccountingSettings | None = None) -> None:
        self.facts = Facts(settings or AccountingSettings())
        self.ledger = Ledger(self.facts.tree.path)
        self.assumptions = Assumptions(self.facts.tree.path, self.ledger.claim)

    # Pods and claims: the cost is that of the object itself.

    def put_pod(self, pod: PodView) -> None:
        before = self.facts.pod(pod.uid)
        if before == pod:
            return
        namesake = self.facts.pod_named(pod.namespace, pod.name)
        if namesake is not None and namesake.uid != pod.uid:
            self.delete_pod(namesake.uid)
        if before is not None:
            self.facts.remove_pod(before)
        self.facts.put_pod(pod)
        if pod.is_bound or pod.ended:
            self.assumptions.forget(pod.uid)
        self._recount_pods((pod.uid,), formerly=(before,) if before else ())

    def delete_pod(self, uid: PodUid) -> None:
        pod = self.facts.pod(uid)
        if pod is not None:
            self.facts.remove_pod(pod)
            self.assumptions.forget(uid)
            self._recount_pods((uid,), formerly=(pod,))

    def put_claim(self, claim: ClaimView) -> None:
        before = self.facts.claim(claim.uid)
        namesake = self.facts.claim_named(claim.namespace, claim.name)
        if namesake is not None and namesake.uid != claim.uid:
            self.delete_claim(namesake.uid)
        if before is not None:
            self.facts.remove_claim(before)
        self.facts.put_claim(claim)
        if before != claim:
            self._recount_claims((claim.uid,))

    def delete_claim(self, uid: ClaimUid) -> None:
        claim = self.facts.claim(uid)
        if claim is not None:
            self.facts.remove_claim(claim)
            self._recount_claims((uid,))
            self.assumptions.forget_claim(uid)

    def _recount_pods(self, uids: Iterable[PodUid], formerly: Iterable[PodView] = ()) -> None:
        """Post the entries of pods anew, and of all claims that they name, named or consume."""
        claims: dict[ClaimUid, None] = {}
        for pod in formerly:
            claims |= dict.fromkeys(claim.uid for claim in self.facts.claims_of(pod))
        for uid in uids:
            pod_now = self.facts.pod(uid)
            self.ledger.post_pod(uid, pod_entry(pod_now, self.facts) if pod_now else None)
            claims |= dict.fromkeys(self.facts.claims_consumed_by(uid))
            if pod_now is not None:
                claims |= dict.fromkeys(claim.uid for claim in self.facts.claims_of(pod_now))
        self._recount_claims(claims)

    def _recount_claims(self, uids: Iterable[ClaimUid]) -> None:
        for uid in uids:
            claim = self.facts.claim(uid)
            entry = claim_entry(claim, self.facts) if claim is not None else None
            if self.ledger.post_claim(uid, entry):
                self.assumptions.recount(uid)

    # What pods' queues follow from: the cost is that of the pods concerned.

    def put_namespace(self, namespace: NamespaceView) -> None:
        self.facts.put_namespace(namespace)
        self._recount_pods(self.facts.pods_in_namespace(namespace.name))

    def delete_namespace(self, name: str) -> None:
        self.facts.remove_namespace(name)
        self._recount_pods(self.facts.pods_in_namespace(name))

    def put_group(self, group: PodGroupView) -> None:
        self.facts.put_group(group)
        self._recount_pods(self.facts.pods_in_group((group.namespace, group.name)))

    def delete_group(self, namespace: str, name: str) -> None:
        self.facts.remove_group(namespace, name)
        self._recount_pods(self.facts.pods_in_group((namespace, name)))

    # The tree: the cost is that of what is charged below the queue.

    def put_queue(self, queue: Queue) -> None:
        before = self.facts.tree.get(queue.name)
        with self._listing({*queue.shares, *(before.shares if before else ())}):
            if before is not None and before.parent == queue.parent:
                self.facts.tree.put(queue)
            else:
                with self._moving(queue.name):
                    self.facts.tree.put(queue)

    def delete_queue(self, name: QueueName) -> None:
        before = self.facts.tree.get(name)
        if before is not None:
            with self._listing(before.shares), self._moving(name):
                self.facts.tree.remove(name)

    @contextmanager
    def _moving(self, name: QueueName) -> Iterator[None]:
        below = self.facts.tree.below(name)
        self.ledger.lift(below)
        self.assumptions.lift(below)
        yield
        self.ledger.lay(below)
        self.assumptions.lay(below)

    @contextmanager
    def _listing(self, keys: Iterable[ResourceKey]) -> Iterator[None]:
        """A class without a label is accounted as long as some queue lists it."""
        listed = {key: self.facts.tree.lists(key) for key in sorted(keys)}
        resources = self._resources()
        yield
        changed = [key for key, was in listed.items() if self.facts.tree.lists(key) != was]
        if changed:
            self._recount_classes([ClassName(key) for key in changed])
            self._recount_resources(resources)

    # The catalog: the cost is that of what uses the class or the resource.

    def put_class(self, view: ClassView) -> None:
        resources = self._resources()
        self.facts.catalog.put_class(view)
        self._recount_classes([view.name])
        self._recount_resources(resources)

    def delete_class(self, name: ClassName) -> None:
        resources = self._resources()
        self.facts.catalog.remove_class(name)
        self._recount_classes([name])
        self._recount_resources(resources)

    def put_configuration(self, name: ResourceKey) -> None:
        """One more Configuration has this name; say so once for each object."""
        resources = self._resources()
        self.facts.catalog.put_configuration(name)
        self._recount_resources(resources)

    def delete_configuration(self, name: ResourceKey) -> None:
        resources = self._resources()
        self.facts.catalog.remove_configuration(name)
        self._recount_resources(resources)

    def put_instance(self, instance: InstanceView) -> None:
        resources = self._resources()
        self.facts.catalog.put_instance(instance)
        self._recount_resources(resources)

    def delete_instance(self, name: str) -> None:
        resources = self._resources()
        self.facts.catalog.remove_instance(name)
        self._recount_resources(resources)

    def put_slice(self, view: SliceView) -> None:
        self.facts.catalog.put_slice(view)
        self._recount_claims(self.facts.claims_asking_for_all())

    def delete_slice(self, name: str) -> None:
        self.facts.catalog.remove_slice(name)
        self._recount_claims(self.facts.claims_asking_for_all())

    def _resources(self) -> dict[str, ResourceKey | None]:
        """What the names that pods use as resources stand for."""
        names = self.facts.pods_by_resource()
        return {name: self.facts.catalog.accounted_resource(name) for name in names}

    def _recount_resources(self, before: dict[str, ResourceKey | None]) -> None:
        after = self._resources()
        pods = self.facts.pods_by_resource()
        for name, key in after.items():
            if before[name] != key:
                self._recount_pods(list(pods[name]))

    def _recount_classes(self, names: Iterable[ClassName]) -> None:
        for name in names:
            self._recount_claims(self.facts.claims_of_class(name))
