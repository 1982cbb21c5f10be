"""Extended resources: what a pod requests of them, as Kubernetes adds it up."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.objects.fields import JsonObject, an_object, objects, read_quantity, text
from scheduler_plugin.objects.quantities import whole

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""An extended resource that names the DeviceClass behind it (KEP-5004)."""


def effective_requests(spec: JsonObject) -> tuple[tuple[str, int], ...]:
    """Kubernetes' effective request: KEP-753, without pod-level resources and overhead.

    Containers and sidecars run together; an init container runs beside the sidecars that were
    started before it.
    """
    sidecars: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for where, container in objects(spec.get("initContainers"), "spec.initContainers"):
        requests = _extended_requests(container, where)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, requests)
            _raise(peaks, sidecars)
        else:
            _raise(peaks, {name: n + sidecars.get(name, 0) for name, n in requests.items()})
    together = dict(sidecars)
    for where, container in objects(spec.get("containers"), "spec.containers"):
        _add(together, _extended_requests(container, where))
    _raise(peaks, together)
    return tuple(sorted((name, amount) for name, amount in peaks.items() if amount))


def _add(amounts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount


def _raise(peaks: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        peaks[name] = max(peaks.get(name, 0), amount)


def _extended_requests(container: JsonObject, path: str) -> dict[str, int]:
    """Requests of extended resources; a limit alone is a request too, as the API defaults it."""
    where = f"{path}.resources"
    resources = an_object(container.get("resources"), where)
    limits = an_object(resources.get("limits"), f"{where}.limits")
    requests = an_object(resources.get("requests"), f"{where}.requests")
    return {
        text(name, where): read_quantity(value, f"{where}.requests[{name}]", whole)
        for name, value in {**limits, **requests}.items()
        if is_extended(name)
    }


def is_extended(name: str) -> bool:
    """Whether a resource's name is one that devices may stand behind."""
    domain, slash, _ = name.partition("/")
    if name.startswith(IMPLICIT_PREFIX):
        return True
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not native
