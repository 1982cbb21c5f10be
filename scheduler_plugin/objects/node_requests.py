"""The requests of pods and the resources of nodes, in thousandths of each resource.

Most pods of a cluster are copies of a few: equal requests are added up once, and equal amounts are
one shared object, within the limits of a cache. Shared objects must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple, TypeAlias

from driver.api import effective_requests
from kube.shapes.pods import Container, Resources
from kube.shapes.quantities import thousandths

PODS = "pods"
"""The resource "pods"; each pod takes one."""

Thousandths: TypeAlias = Mapping[str, int]
"""An amount of each resource: 1000 is one CPU, one byte, one device, one pod."""

NOTHING: Thousandths = {}

MOST_REMEMBERED = 8192
"""How many different requests, quantities and amounts are cached."""

Written: TypeAlias = tuple[tuple[str, str], ...]
"""Names of resources and quantities, as the API writes them."""


class WrittenRequests(NamedTuple):
    """All parts of a pod's spec that decide its effective requests.

    Attributes:
        init_containers: The requests of each, and whether it is a sidecar.
        containers: The requests of each.
        own: The pod-level requests, which replace the sum of its containers.
        overhead: The overhead of its runtime class.
    """

    init_containers: tuple[tuple[Written, bool], ...]
    containers: tuple[Written, ...]
    own: Written = ()
    overhead: Written = ()


def written_requests(
    init_containers: Sequence[Container] | None,
    containers: Sequence[Container] | None,
    own: Resources | None,
    overhead: Mapping[str, Any] | None,
) -> WrittenRequests:
    """The parts of a pod's spec that decide its effective requests."""
    return WrittenRequests(
        tuple(
            (_requested(each.resources), each.restart_policy == "Always")
            for each in init_containers or ()
        ),
        tuple(_requested(each.resources) for each in containers or ()),
        _requested(own),
        _written(overhead or {}),
    )


def _requested(resources: Resources | None) -> Written:
    """The requests; a limit without a request is a request, too, as in the API's defaults."""
    if resources is None:
        return ()
    return _written({**(resources.limits or {}), **(resources.requests or {})})


def _written(quantities: Mapping[str, Any]) -> Written:
    return tuple([(name, str(quantity)) for name, quantity in quantities.items()])


@lru_cache(MOST_REMEMBERED)
def asked_of_node(written: WrittenRequests) -> Thousandths:
    """A pod's effective requests, with its overhead and one pod."""
    init = [(_read(each), is_sidecar) for each, is_sidecar in written.init_containers]
    asked = effective_requests(init, map(_read, written.containers))
    asked |= _read(written.own)
    for name, amount in _read(written.overhead).items():
        asked[name] = asked.get(name, 0) + amount
    return _interned(asked | {PODS: 1000})


def amounts(quantities: Mapping[str, Any]) -> Thousandths:
    """Amounts from quantities, such as those of a node."""
    return _interned(_read(_written(quantities)))


def _read(written: Written) -> dict[str, int]:
    return {intern(name): _amount(quantity) for name, quantity in written}


@lru_cache(MOST_REMEMBERED)
def _amount(quantity: str) -> int:
    """The amount of a quantity; 0 if it is invalid or negative."""
    return thousandths(quantity) or 0


def _interned(found: dict[str, int]) -> Thousandths:
    return _one_of_equals(tuple(sorted(found.items())))


@lru_cache(MOST_REMEMBERED)
def _one_of_equals(pairs: tuple[tuple[str, int], ...]) -> Thousandths:
    return dict(pairs)
