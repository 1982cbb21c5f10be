"""Who uses devices of Moorage's: a kubelet cannot end these pods without the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from driver.api import DRIVER_NAME
from scheduler_plugin.checking.setups import name_of
from scheduler_plugin.objects.fields import JsonObject


def device_users(claims: Iterable[JsonObject], instances: Iterable[JsonObject]) -> tuple[str, ...]:
    """A sentence for each claim that pods may use, and for each Instance with slots in use."""
    return (*_of_claims(claims), *_of_instances(instances))


def _of_claims(claims: Iterable[JsonObject]) -> Iterator[str]:
    for body in claims:
        status = body.get("status") or {}
        allocation = status.get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        users = [str(each["name"]) for each in status.get("reservedFor") or ()]
        if users and any(result["driver"] == DRIVER_NAME for result in results):
            yield f"ResourceClaim {_namespaced(body)}: {_counted('Pod', users)}"


def _of_instances(instances: Iterable[JsonObject]) -> Iterator[str]:
    """The device plugin's slots: their pods are known to the node alone."""
    for body in instances:
        usage = (body.get("spec") or {}).get("deviceUsage") or {}
        holders = [str(value).rpartition(":")[2] for value in usage.values() if value]
        if holders:
            nodes = _counted("node", sorted(set(holders)))
            slots = f"{len(holders)} slot{'s' * (len(holders) > 1)}"
            yield f"Instance {_namespaced(body)}: {slots}, of {nodes}"


def _namespaced(body: JsonObject) -> str:
    return f"{body['metadata'].get('namespace')}/{name_of(body)}"


def _counted(kind: str, names: Sequence[str]) -> str:
    return f"{kind}{'s' * (len(names) > 1)} {', '.join(names)}"
