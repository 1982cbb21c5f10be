"""Which nodes something may use: selectors of their labels and names, taints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.objects.fields import JsonObject

KEEPS_AWAY = ("NoSchedule", "NoExecute")
"""Effects of taints that keep whoever does not tolerate them."""

NAME_FIELD = "metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """A node selector: one of the terms must match, and of a term all parts.

    None for the terms stands for all nodes.
    """

    terms: tuple[JsonObject, ...] | None = None

    def match(self, name: str, labels: Mapping[str, str]) -> bool:
        return self.terms is None or any(_term(term, name, labels) for term in self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """Nodes that it names, by their own names or as hosts."""
        found: dict[str, None] = {}
        for term in self.terms or ():
            parts = (*(term.get("matchFields") or ()), *(term.get("matchExpressions") or ()))
            for part in parts:
                if part["key"] in (NAME_FIELD, HOSTNAME_LABEL) and part.get("operator") == "In":
                    found |= dict.fromkeys(part.get("values") or ())
        return tuple(found)


EVERYWHERE = NodeTerms()


def node_terms(selector: JsonObject | None) -> NodeTerms:
    """Read a NodeSelector of the API; without one it is all nodes."""
    if selector is None:
        return EVERYWHERE
    return NodeTerms(tuple(selector.get("nodeSelectorTerms") or ()))


def on_node(name: str) -> NodeTerms:
    """That node alone."""
    field = {"key": NAME_FIELD, "operator": "In", "values": [name]}
    return NodeTerms(({"matchFields": [field]},))


def _term(term: JsonObject, name: str, labels: Mapping[str, str]) -> bool:
    """A term without any part matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    own = {NAME_FIELD: name}
    return all(_holds(part, labels) for part in expressions) and all(
        _holds(part, own) for part in fields
    )


def _holds(part: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether a requirement holds; one of an operator that is not known never does."""
    value, values = labels.get(part["key"]), part.get("values") or ()
    match part.get("operator"):
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


def _compares(operator: str, value: str | None, values: Sequence[Any]) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def untolerated(taints: Sequence[JsonObject], tolerations: Sequence[JsonObject]) -> str:
    """A taint that keeps away whoever has these tolerations; "" for none."""
    for taint in taints:
        if taint.get("effect") in KEEPS_AWAY and not any(_bears(t, taint) for t in tolerations):
            return str(taint.get("key"))
    return ""


def _bears(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key") or ""
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return key in ("", taint.get("key"))
    same_value = (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Equal" and key == taint.get("key") and same_value)
