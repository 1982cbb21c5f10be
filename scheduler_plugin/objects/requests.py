"""Extended resources: what a pod requests of them, as Kubernetes adds it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

import msgspec

from scheduler_plugin.objects.fields import read_quantity
from scheduler_plugin.objects.quantities import whole

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""An extended resource that names the DeviceClass behind it (KEP-5004)."""


class Resources(msgspec.Struct, frozen=True):
    """What a container asks for, and what it may use at most, by name."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container, or an init container."""

    restart_policy: str | None = None
    resources: Resources | None = None


def effective_requests(
    init_containers: Sequence[Container], containers: Sequence[Container]
) -> tuple[tuple[str, int], ...]:
    """Kubernetes' effective request: KEP-753, without pod-level resources and overhead.

    Containers and sidecars run together; an init container runs beside the sidecars that were
    started before it.
    """
    sidecars: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for number, container in enumerate(init_containers):
        requests = _extended_requests(container, f"spec.initContainers[{number}]")
        if container.restart_policy == "Always":
            _add(sidecars, requests)
            _raise(peaks, sidecars)
        else:
            _raise(peaks, {name: n + sidecars.get(name, 0) for name, n in requests.items()})
    together = dict(sidecars)
    for number, container in enumerate(containers):
        _add(together, _extended_requests(container, f"spec.containers[{number}]"))
    _raise(peaks, together)
    return tuple(sorted((name, amount) for name, amount in peaks.items() if amount))


def _add(amounts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def _raise(peaks: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        peaks[name] = max(peaks.get(name, 0), amount)


def _extended_requests(container: Container, path: str) -> dict[str, int]:
    """Requests of extended resources; a limit alone is a request too, as the API defaults it."""
    resources = container.resources
    if resources is None:
        return {}
    asked = {**(resources.limits or {}), **(resources.requests or {})}
    return {
        intern(name): read_quantity(value, f"{path}.resources.requests[{name}]", whole)
        for name, value in asked.items()
        if "/" in name and is_extended(name)
    }


def is_extended(name: str) -> bool:
    """Whether a resource's name is one that devices may stand behind."""
    domain, slash, _ = name.partition("/")
    if name.startswith(IMPLICIT_PREFIX):
        return True
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not native
