"""Label selectors with the semantics of the Kubernetes API."""

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
    """A selector whose requirements must all match; without any, it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


def selector_of(shape: shapes.LabelSelector | None) -> LabelSelector | None:
    """The selector of an API object; None selects nothing and `{}` everything, as in the API.

    Raises ValueError for an unknown operator.
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
