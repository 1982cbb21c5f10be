"""What a request of a capacity consumes, as kube-scheduler rounds it.

The rules are those of `requestPolicy` of resource.k8s.io/v1 (KEP-5075). Amounts are thousandths.
Kubernetes 1.36 rounds in whole units only, so before the allocation an amount may be off by less
than one unit; the allocation says exactly what was consumed.
"""

from __future__ import annotations

from typing import NamedTuple

from kube.shapes.quantities import thousandths
from kube.shapes.slices import RequestPolicy


class Policy(NamedTuple):
    """How requests of one capacity are rounded.

    Attributes:
        default: What is consumed without a request; None for all of the capacity.
        valid: The amounts that can be consumed, in ascending order; () for any.
        least: The smallest amount.
        step: The distance between amounts above the smallest; 0 for any amount.
    """

    default: int | None = None
    valid: tuple[int, ...] = ()
    least: int = 0
    step: int = 0


NO_POLICY = Policy()


def policy_of(given: RequestPolicy | None) -> Policy:
    """A policy of a slice; what is no quantity is ignored."""
    if given is None:
        return NO_POLICY
    found = given.valid_range
    return Policy(
        default=thousandths(given.default),
        valid=tuple(sorted(filter(None, map(thousandths, given.valid_values or ())))),
        least=(thousandths(found.min) or 0) if found else 0,
        step=(thousandths(found.step) or 0) if found else 0,
    )


def consumed(asked: int | None, has: int, policy: Policy) -> int:
    """What a request consumes of a capacity.

    Args:
        asked: The request; None for none.
        has: All of the capacity.
        policy: How requests of it are rounded.
    """
    if asked is None:
        return has if policy.default is None else policy.default
    if policy.valid:
        return next((amount for amount in policy.valid if amount >= asked), asked)
    if asked <= policy.least:
        return policy.least
    return asked if not policy.step else _rounded_up(asked - policy.least, policy)


def _rounded_up(beyond: int, policy: Policy) -> int:
    return policy.least - -beyond // policy.step * policy.step
