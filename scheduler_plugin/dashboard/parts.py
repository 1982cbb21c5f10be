"""What the page shows, and what one must be allowed to list to see it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kube.kinds import CLAIMS, EVENTS, INSTANCES, PODS, QUEUES, Resource


class Part(StrEnum):
    """One list of the page."""

    QUEUES = "queues"
    CLAIMS = "claims"
    DEVICES = "devices"
    WAITING = "waiting"
    EVENTS = "events"


SHOWS = {
    Part.QUEUES: QUEUES,
    Part.CLAIMS: CLAIMS,
    Part.DEVICES: INSTANCES,
    Part.WAITING: PODS,
    Part.EVENTS: EVENTS,
}
"""The kind that a viewer must be allowed to list, for all that its rows say."""

SHOWS_BESIDE = {Part.CLAIMS: PODS, Part.DEVICES: CLAIMS}
"""The kind that he must be allowed to list for what its rows say of others beside that."""

IN_ONE_NAMESPACE = frozenset({Part.CLAIMS, Part.WAITING, Part.EVENTS})
"""Whose rows are each of one namespace, so that who may list there sees these."""


@dataclass(frozen=True, slots=True)
class Access:
    """Listing a kind, in one namespace or, with "", in all."""

    kind: Resource
    namespace: str = ""

    def attributes(self) -> dict[str, str]:
        """As a SubjectAccessReview asks for it."""
        return {
            "verb": "list",
            "group": self.kind.group,
            "resource": self.kind.plural,
            "namespace": self.namespace,
        }

    def denied(self, who: str) -> str:
        """The sentence for whoever may not."""
        what = f"{self.kind.plural}.{self.kind.group}".rstrip(".")
        where = ""
        if self.kind.namespaced:
            where = f' in namespace "{self.namespace}"' if self.namespace else " in all namespaces"
        return f'"{who}" may not see this: it takes the verb "list" on "{what}"{where}.'


def access(part: Part, namespace: str) -> Access:
    """What a list takes; of one namespace where its rows are and one is named."""
    return Access(SHOWS[part], namespace if part in IN_ONE_NAMESPACE else "")


def access_beside(part: Part, namespace: str) -> Access | None:
    """What the rest of its rows takes; None where there is no more."""
    kind = SHOWS_BESIDE.get(part)
    if kind is None:
        return None
    return Access(kind, namespace if part in IN_ONE_NAMESPACE else "")
