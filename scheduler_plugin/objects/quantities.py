"""Quantities of the Kubernetes API as whole numbers of devices or slots."""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2}|[A-Za-z]{0,2})"
)

_SUFFIXES = {
    "": Fraction(1),
    **{name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", start=1)},
    **{f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
    **{name: Fraction(1, 1000**power) for power, name in enumerate("mun", start=1)},
}


def whole(quantity: object) -> int | None:
    """The whole number that covers a quantity; None for what is no quantity, or below zero.

    A part of a device is a device: 1500m is 2.
    """
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
    if sign == "-" and value:
        return None
    return -(-value.numerator // value.denominator)


def _scale(suffix: str) -> Fraction | None:
    if len(suffix) > 1 and suffix[0] in "eE" and not suffix.endswith("i"):
        return Fraction(10) ** int(suffix[1:])
    return _SUFFIXES.get(suffix)
