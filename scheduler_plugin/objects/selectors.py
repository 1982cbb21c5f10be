"""Label selectors, matched as the Kubernetes API defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kube.shapes import selection as shapes


class Operator(StrEnum):
    """How a requirement relates a label to its values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One of `matchExpressions`; an entry of `matchLabels` is `In` with one value."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must match; without any, everything does."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def selector_of(shape: shapes.LabelSelector | None) -> LabelSelector | None:
    """One as the API has it; as everywhere there, absent selects nothing and `{}` everything.

    Raises ValueError for an operator that is none.
    """
    if shape is None:
        return None
    labels, expressions = shape.match_labels or {}, shape.match_expressions or ()
    return LabelSelector(
        (
            *(Requirement(key, Operator.IN, (label,)) for key, label in labels.items()),
            *(Requirement(e.key, Operator(e.operator or ""), e.values or ()) for e in expressions),
        )
    )
