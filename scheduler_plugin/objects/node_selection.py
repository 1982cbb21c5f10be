"""The selection of nodes: selectors of labels and names, taints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kube.shapes.reading import JsonObject, read_as
from kube.shapes.selection import (
    REPELLING_EFFECTS,
    NodeSelector,
    Requirement,
    Taint,
    Term,
    Toleration,
)

NAME_FIELD = "metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"

MOST_REMEMBERED = 8192
"""How many different selectors are cached."""


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """A node selector: one of the terms must match with all its parts.

    If `terms` is None, it selects all nodes.
    """

    terms: tuple[Term, ...] | None = None

    def match(self, name: str, labels: Mapping[str, str]) -> bool:
        return self.terms is None or any(_term(term, name, labels) for term in self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that it names, by name or by the host name label."""
        found: dict[str, None] = {}
        for term in self.terms or ():
            for part in (*(term.match_fields or ()), *(term.match_expressions or ())):
                if part.key in (NAME_FIELD, HOSTNAME_LABEL) and part.operator == "In":
                    found |= dict.fromkeys(part.values or ())
        return tuple(found)


EVERYWHERE = NodeTerms()


def node_terms(selector: JsonObject | NodeSelector | None) -> NodeTerms:
    """Parse a NodeSelector; None selects all nodes. Raises UnreadableError."""
    if selector is None:
        return EVERYWHERE
    return NodeTerms(read_as(NodeSelector, selector).node_selector_terms or ())


@lru_cache(MOST_REMEMBERED)
def selected_nodes(selector: NodeSelector) -> NodeTerms:
    """`node_terms` of a parsed selector; equal selectors share one object."""
    return node_terms(selector)


def on_node(name: str) -> NodeTerms:
    """Selects one node by its name."""
    return NodeTerms((Term(match_fields=(Requirement(NAME_FIELD, "In", (name,)),)),))


def _term(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    """A term without any part matches nothing."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    own = {NAME_FIELD: name}
    return all(_holds(part, labels) for part in expressions) and all(
        _holds(part, own) for part in fields
    )


def _holds(part: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether a requirement holds; one with an unknown operator never does."""
    value, values = labels.get(part.key), part.values or ()
    match part.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
        case _:
            return False


def _compares(operator: str, value: str | None, values: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> str:
    """The key of the first taint that these tolerations do not tolerate; "" for none."""
    for taint in taints:
        if taint.effect in REPELLING_EFFECTS and not any(_tolerates(t, taint) for t in tolerations):
            return str(taint.key)
    return ""


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in (None, "", taint.effect):
        return False
    key = toleration.key or ""
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return key in ("", taint.key)
    same_value = (toleration.value or "") == (taint.value or "")
    return operator == "Equal" and key == taint.key and same_value
