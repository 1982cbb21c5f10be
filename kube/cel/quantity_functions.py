"""The functions on quantities that CEL of Kubernetes has, for the child's contexts.

A quantity is its number of thousandths. The functions are those of the Kubernetes library
`k8s.io/apiserver/pkg/cel/library/quantity.go`; a method's object is the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, gt, lt, sub

from kube.shapes.quantities import PER_UNIT, thousandths


def _quantity(text: str) -> int:
    """Raises ValueError if the text is no quantity, as Kubernetes ends the evaluation then."""
    found = thousandths(text)
    if found is None:
        raise ValueError(text)
    return found


def _compare(one: int, other: int) -> int:
    return (one > other) - (one < other)


def _sign(amount: int) -> int:
    return _compare(amount, 0)


def _as_integer(amount: int) -> int:
    """Raises ValueError if it is no whole number."""
    units, rest = divmod(amount, PER_UNIT)
    if rest:
        raise ValueError(amount)
    return units


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "quantity": _quantity,
    "isQuantity": lambda text: thousandths(text) is not None,
    "compareTo": _compare,
    "isLessThan": lt,
    "isGreaterThan": gt,
    "add": add,
    "sub": sub,
    "sign": _sign,
    "isInteger": lambda amount: not amount % PER_UNIT,
    "asInteger": _as_integer,
    "asApproximateFloat": lambda amount: amount / PER_UNIT,
}
