"""The lists of the page, and the rights that a viewer needs for each."""

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
"""The kind that a viewer must be allowed to list to see the rows."""

SHOWS_BESIDE = {Part.CLAIMS: PODS, Part.DEVICES: CLAIMS}
"""The kind that a viewer must be allowed to list to see the rest of each row."""

IN_ONE_NAMESPACE = frozenset({Part.CLAIMS, Part.WAITING, Part.EVENTS})
"""Lists whose rows each belong to one namespace: the right to list there is enough for them."""


@dataclass(frozen=True, slots=True)
class Access:
    """The right to list a kind in one namespace, or in all if it is ""."""

    kind: Resource
    namespace: str = ""

    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of a SubjectAccessReview."""
        return {
            "verb": "list",
            "group": self.kind.group,
            "resource": self.kind.plural,
            "namespace": self.namespace,
        }

    def denied(self, user: str) -> str:
        """The sentence for a user without the right."""
        what = f"{self.kind.plural}.{self.kind.group}".rstrip(".")
        where = ""
        if self.kind.namespaced:
            where = f' in namespace "{self.namespace}"' if self.namespace else " in all namespaces"
        return f'"{user}" may not see this: it needs the verb "list" on "{what}"{where}.'


def access(part: Part, namespace: str) -> Access:
    """The right that a list needs; in one namespace if that is named and its rows have one."""
    return Access(SHOWS[part], namespace if part in IN_ONE_NAMESPACE else "")


def access_beside(part: Part, namespace: str) -> Access | None:
    """The right that the rest of the rows needs; None if the rows have no rest."""
    kind = SHOWS_BESIDE.get(part)
    if kind is None:
        return None
    return Access(kind, namespace if part in IN_ONE_NAMESPACE else "")
