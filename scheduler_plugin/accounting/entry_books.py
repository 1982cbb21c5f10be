"""The part of the books that takes pods, claims, namespaces and PodGroups; `books` has the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.accounting.charges.entries import claim_entry, pod_entry
from scheduler_plugin.accounting.charges.ledger import Ledger
from scheduler_plugin.accounting.charges.measures import open_groups
from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.accounting.queues.pods_by_queue import PodsByQueue
from scheduler_plugin.accounting.shared_counters import sharers_of
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.open_looks import OpenLook, SelectedLook
from scheduler_plugin.objects.devices.selections import Expressions, digest_of_look
from scheduler_plugin.objects.names import AccountingSettings, ClaimUid, PodUid
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView


class EntryBooks(BooksView):
    """Takes events of pods, claims, namespaces and PodGroups, and posts the entries they change."""

    def __init__(self, settings: AccountingSettings | None = None) -> None:
        self._facts = Facts(settings or AccountingSettings(), lambda uid: self._awaits_binding(uid))
        self._ledger = Ledger(self.facts.tree.path)
        self.waiting = PodsByQueue()

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    def _awaits_binding(self, uid: PodUid) -> bool:
        """Whether a pod's binding was requested, and its outcome is not known yet."""
        return False

    def _note_pod(self, pod: PodView) -> None:
        """Called once a pod is entered, before it is counted."""

    def _note_gone_pod(self, uid: PodUid) -> None:
        """Called once a pod is removed, while it still counts."""

    def _note_regrouped(self, uid: ClaimUid) -> None:
        """Called when other pods use a claim through its PodGroups than before."""

    # Pods and claims: an event costs as much as the object itself.

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
        self._note_pod(pod)
        self._recount_pods((pod.uid,), formerly=(before,) if before else ())

    def delete_pod(self, uid: PodUid) -> None:
        pod = self.facts.pod(uid)
        if pod is not None:
            self.facts.remove_pod(pod)
            self._note_gone_pod(uid)
            self._recount_pods((uid,), formerly=(pod,))

    def put_claim(self, claim: ClaimView) -> None:
        before = self.facts.claim(claim.uid)
        namesake = self.facts.claim_named(claim.namespace, claim.name)
        if namesake is not None and namesake.uid != claim.uid:
            self.delete_claim(namesake.uid)
        if before is not None:
            self.facts.remove_claim(before)
        self.facts.put_claim(claim)
        if before is None:
            self._recount_pods(self.facts.pods_covered_by(claim))
        if before != claim:
            self._recount_claims((claim.uid, *sharers_of(self.facts, before, claim)))

    def delete_claim(self, uid: ClaimUid) -> None:
        claim = self.facts.claim(uid)
        if claim is not None:
            self.facts.remove_claim(claim)
            self.facts.note_gone_claim(claim.key)
            self._recount_claims((uid, *sharers_of(self.facts, claim)))
            self._recount_pods(self.facts.pods_covered_by(claim))

    def note_gone_claim(self, namespace: str, name: str) -> None:
        """Note that the API server has no such claim. A known claim ends by its watch only."""
        self.facts.note_gone_claim((namespace, name))

    def _recount_pods(self, uids: Iterable[PodUid], formerly: Iterable[PodView] = ()) -> None:
        """Post the entries of pods again, and of all claims that they name, named or consume."""
        facts, formerly = self.facts, list(formerly)
        claims = {claim.uid: None for pod in formerly for claim in facts.claims_of(pod)}
        for uid in uids:
            pod = facts.pod(uid)
            self.waiting.put(uid, facts.waits_in(uid))
            self.ledger.post_pod(uid, pod_entry(pod, facts) if pod else None)
            claims |= dict.fromkeys(
                (*facts.claims_consumed_by(uid), *facts.claims_written_for(uid))
            )
            claims |= dict.fromkeys(claim.uid for claim in (facts.claims_of(pod) if pod else ()))
        self._recount_claims(claims)

    def _recount_claims(self, uids: Iterable[ClaimUid]) -> None:
        for uid in uids:
            if self.facts.regroup(uid):
                self._note_regrouped(uid)
            self._recount_claim(uid)

    def _recount_claim(self, uid: ClaimUid) -> bool:
        """Post the entry of a claim again; returns whether it changed."""
        claim = self.facts.claim(uid)
        self._look_at_devices(uid, claim)
        return self.ledger.post_claim(uid, claim_entry(claim, self.facts) if claim else None)

    def _look_at_devices(self, uid: ClaimUid, claim: ClaimView | None) -> None:
        """Note what is to be evaluated before the charges of a claim are exact."""
        catalog = self.facts.catalog
        is_counted = claim is not None and bool(catalog.definitions)
        self.facts.open_looks.put(uid, open_groups(claim, catalog) if claim and is_counted else ())

    def put_selected(
        self, expressions: Expressions, answers: Mapping[str, bool | None]
    ) -> list[ClaimUid]:
        """Enter whether expressions select devices, by look; None if they cannot be evaluated.

        Returns the claims that waited for it.
        """
        found = {digest_of_look(look): answer for look, answer in answers.items()}
        self.facts.catalog.selections.put(expressions, found)
        looks = [OpenLook(expressions, look) for look in answers]
        claims = self.facts.open_looks.claims_of(looks)
        self._recount_claims(claims)
        return claims

    def put_too_slow(self, expressions: Expressions) -> list[ClaimUid]:
        """Enter that expressions take too long: they count as if they selected all devices.

        Returns the claims that waited for them.
        """
        self.facts.catalog.selections.put_too_slow(expressions)
        claims = self.facts.open_looks.claims_awaiting(expressions)
        self._recount_claims(claims)
        return claims

    def selected(self, expressions: Expressions, looks: Iterable[str]) -> list[SelectedLook]:
        """The results of expressions for these looks; None where they take too long."""
        answers = self.facts.catalog.selections.of(expressions).answers
        return [
            SelectedLook(expressions, look, answers.get(digest_of_look(look))) for look in looks
        ]

    # Objects that decide pods' queues: an event costs as much as the pods concerned.

    def put_namespace(self, namespace: NamespaceView) -> None:
        if self.facts.namespaces.get(namespace.name) != namespace:
            self.facts.pod_queues.put_namespace(namespace)
            self._recount_pods(self.facts.pods_in_namespace(namespace.name))

    def delete_namespace(self, name: str) -> None:
        self.facts.pod_queues.remove_namespace(name)
        self._recount_pods(self.facts.pods_in_namespace(name))

    def put_group(self, group: PodGroupView) -> None:
        if self.facts.group(group.namespace, group.name) != group:
            self.facts.pod_queues.put_group(group)
            self._recount_group(group.namespace, group.name)

    def delete_group(self, namespace: str, name: str) -> None:
        self.facts.pod_queues.remove_group(namespace, name)
        self._recount_group(namespace, name)

    def _recount_group(self, namespace: str, name: str) -> None:
        self._recount_pods(self.facts.pods_in_group((namespace, name)))
        self._recount_claims(self.facts.claims_of_group(namespace, name))

    def serve_groups(self, *, served: bool) -> None:
        """Set whether the cluster serves any kind of PodGroups."""
        if self.facts.pod_queues.has_groups != served:
            self.facts.pod_queues.has_groups = served
            for group in self.facts.groups_named():
                self._recount_pods(self.facts.pods_in_group(group))
