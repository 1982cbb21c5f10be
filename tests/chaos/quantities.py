"""Quantities as Kubernetes writes them, read by the checker itself."""

from __future__ import annotations

import re
from decimal import Decimal

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")


def amount(quantity: int | str) -> int:
    """A quantity in whole units, as all of the trials are; ValueError for anything else."""
    found = QUANTITY.fullmatch(str(quantity))
    if not found:
        raise ValueError(f"{quantity!r} is no quantity")
    number, unit = Decimal(found[1]), found[2]
    exact = number * 2 ** BINARY[unit] if unit in BINARY else number.scaleb(DECIMAL[unit])
    if exact != int(exact):
        raise ValueError(f"{quantity!r} is not whole")
    return int(exact)
