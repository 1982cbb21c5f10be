"""Requests of extended resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import intern

from driver.api import effective_requests
from kube.shapes.pods import Container
from kube.shapes.quantities import whole
from kube.shapes.reading import UnreadableError

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The prefix of an extended resource that names its DeviceClass (KEP-5004)."""


def extended_requests(
    init_containers: Sequence[Container], containers: Sequence[Container]
) -> tuple[tuple[str, int], ...]:
    """A pod's effective requests of extended resources."""
    init = [
        (_of(container, f"spec.initContainers[{number}]"), container.restart_policy == "Always")
        for number, container in enumerate(init_containers)
    ]
    others = [_of(each, f"spec.containers[{number}]") for number, each in enumerate(containers)]
    if not any(others) and not any(wanted for wanted, _ in init):
        return ()  # Saves time: most pods request none.
    return tuple(effective_requests(init, others).items())


def _of(container: Container, path: str) -> dict[str, int]:
    """Requests of extended resources; a limit without a request is one, too, as in the API."""
    resources = container.resources
    if resources is None:
        return {}
    asked = {**(resources.limits or {}), **(resources.requests or {})}
    return {
        intern(name): read_quantity(value, f"{path}.resources.requests[{name}]", whole)
        for name, value in asked.items()
        if "/" in name and is_extended(name)
    }


def read_quantity(value: object, path: str, read: Callable[[object], int | None]) -> int:
    """Read a quantity; raises UnreadableError with its path."""
    found = read(value)
    if found is None:
        raise UnreadableError(path, f"{value!r:.80} is not a quantity of at least 0.")
    return found


def is_extended(name: str) -> bool:
    """Whether a resource's name is that of an extended resource."""
    domain, slash, _ = name.partition("/")
    if name.startswith(IMPLICIT_PREFIX):
        return True
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not native
