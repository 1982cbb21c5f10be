"""Extended resources: what a pod requests of them, as Kubernetes adds it up."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any

import msgspec

from driver.api import effective_requests
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


def extended_requests(
    init_containers: Sequence[Container], containers: Sequence[Container]
) -> tuple[tuple[str, int], ...]:
    """What a pod asks for of extended resources, in all."""
    init = [
        (_of(container, f"spec.initContainers[{number}]"), container.restart_policy == "Always")
        for number, container in enumerate(init_containers)
    ]
    others = [_of(each, f"spec.containers[{number}]") for number, each in enumerate(containers)]
    if not any(others) and not any(wanted for wanted, _ in init):
        return ()  # As for most pods, of which thousands are read.
    return tuple(effective_requests(init, others).items())


def _of(container: Container, path: str) -> dict[str, int]:
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
