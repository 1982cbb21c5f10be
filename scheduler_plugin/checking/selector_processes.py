"""Finds the selectors that are no valid CEL, in a process of their own."""

from __future__ import annotations

from collections.abc import Iterable

from kube.cel.api import CelProcess, NotEvaluatedError, TooSlowError
from scheduler_plugin.checking.setups import Unread


async def invalid_selectors(selectors: Iterable[str]) -> frozenset[str] | Unread:
    """Those that cannot be parsed; whether they can be evaluated depends on the device."""
    process, found = CelProcess(), set()
    try:
        for selector in dict.fromkeys(selectors):
            if not await _is_valid(process, selector):
                found.add(selector)
    except NotEvaluatedError as error:
        return Unread(f"{error}.")
    finally:
        await process.close()
    return frozenset(found)


async def _is_valid(process: CelProcess, selector: str) -> bool:
    # The first operand decides, so the second is parsed, and not evaluated.
    try:
        return await process.matches([f"true || (\n{selector}\n)"], [{}]) == [True]
    except TooSlowError:
        return False
