"""Quantities of the API, such as `1500m` or `40Gi`, as whole numbers.

The forms are those of `k8s.io/apimachinery/pkg/api/resource`.
"""

from __future__ import annotations

import re
from fractions import Fraction

PER_UNIT = 1000
"""Thousandths in one unit."""

_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2}|[A-Za-z]{0,2})"
)

_SUFFIXES = {
    "": Fraction(1),
    **{name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", start=1)},
    **{f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
    **{name: Fraction(1, 1000**power) for power, name in enumerate("mun", start=1)},
}

_UNITS = (
    *((f"{name}i", 1024**power) for power, name in enumerate("KMGTPE", start=1)),
    *((name, 1000**power) for power, name in enumerate("kMGTPE", start=1)),
)


def whole(quantity: object) -> int | None:
    """A quantity rounded up to a whole number: 1500m is 2; None if it is invalid or negative."""
    value = _value(quantity)
    return None if value is None else -(-value.numerator // value.denominator)


def thousandths(quantity: object) -> int | None:
    """A quantity in thousandths, rounded up: 1500m is 1500; None if it is invalid or negative."""
    value = _value(quantity)
    return None if value is None else -(-1000 * value.numerator // value.denominator)


def _value(quantity: object) -> Fraction | None:
    if isinstance(quantity, bool) or not isinstance(quantity, int | str):
        return None
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    scale = _scale(suffix)
    if scale is None:
        return None
    value = Fraction(digits if digits[-1] != "." else digits[:-1]) * scale
    return None if sign == "-" and value else value


def _scale(suffix: str) -> Fraction | None:
    if len(suffix) > 1 and suffix[0] in "eE" and not suffix.endswith("i"):
        return Fraction(10) ** int(suffix[1:])
    return _SUFFIXES.get(suffix)


def quantity_text(thousandths: int) -> str:
    """An amount of at least 0 as a quantity of Kubernetes: the shortest text that is exact."""
    units, rest = divmod(thousandths, PER_UNIT)
    if rest:
        return f"{thousandths}m"
    exact = (f"{units // size}{suffix}" for suffix, size in _UNITS if units % size == 0)
    return min((str(units), *exact), key=len) if units else "0"


def unit_of(thousandths: int) -> tuple[str, int]:
    """The suffix of `quantity_text`, and how many units it stands for; "" and 1 for none."""
    suffix = quantity_text(thousandths).lstrip("0123456789")
    return (suffix, int(_SUFFIXES[suffix])) if suffix not in ("", "m") else ("", 1)
