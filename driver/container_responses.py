"""Container responses: what the kubelet gives to a container for its devices.

One for each container, with everything merged, since the kubelet reads no second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from driver.api import InstanceName
from driver.cdi import is_variable
from driver.claims import unusable
from driver.devices import DeviceSpec, Mount
from driver.instances import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResponse:
    """What a container gets.

    Attributes:
        environment: Each property under its name and under its name with the Instance's hash.
        cdi_names: Qualified names of CDI devices. A kubelet that does not know of them ignores
            them, and a runtime that does lets them win over the same node or mount given here.
    """

    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    cdi_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a container cannot have these devices; one sentence for the kubelet."""

    sentence: str


def container_response(
    instances: Iterable[Instance], cdi_names: Mapping[InstanceName, str]
) -> ContainerResponse | Unusable:
    """Merge what a container gets for these Instances; one that comes twice gives once.

    Args:
        instances: As discovery knows them now.
        cdi_names: Of Instances that have a CDI file.
    """
    once = [i for _, i in sorted({i.name: i for i in instances}.items())]
    for instance in once:
        if problem := unusable(instance):
            return Unusable(f"Instance {instance.name} {problem}")
    if clash := _clash(once):
        return Unusable(clash)
    return ContainerResponse(
        environment=_environment(once),
        mounts=_mounts(once),
        device_specs=_device_specs(once),
        cdi_names=tuple(cdi_names[i.name] for i in once if i.name in cdi_names),
    )


def _clash(instances: Iterable[Instance]) -> str:
    """Two things of the host that would be at one place in the container."""
    places: dict[str, tuple[str, InstanceName]] = {}
    for instance in instances:
        items: tuple[DeviceSpec | Mount, ...] = (*instance.device_specs, *instance.mounts)
        for item in items:
            host_path, first = places.setdefault(
                item.container_path, (item.host_path, instance.name)
            )
            if host_path != item.host_path:
                return (
                    f"{host_path} of Instance {first} and {item.host_path} of Instance"
                    f" {instance.name} would both be {item.container_path} in the container"
                )
    return ""


def _environment(instances: Iterable[Instance]) -> dict[str, str]:
    """Properties that can be variables; the first Instance by name gives the plain ones."""
    environment: dict[str, str] = {}
    for instance in instances:
        for name, value in sorted(instance.properties.items()):
            if is_variable(name, value):
                environment.setdefault(name, value)
    for instance in instances:
        for name, value in sorted(instance.properties.items()):
            if is_variable(name, value):
                environment[f"{name}_{instance.hash.upper()}"] = value
    return environment


def _device_specs(instances: Iterable[Instance]) -> tuple[DeviceSpec, ...]:
    """Each node once, with all permissions that any Instance gives it."""
    merged: dict[str, DeviceSpec] = {}
    for spec in (spec for instance in instances for spec in instance.device_specs):
        before = merged.setdefault(spec.container_path, spec)
        permissions = "".join(p for p in "rwm" if p in before.permissions + spec.permissions)
        merged[spec.container_path] = replace(spec, permissions=permissions)
    return tuple(merged.values())


def _mounts(instances: Iterable[Instance]) -> tuple[Mount, ...]:
    """Each mount once, writable if any Instance makes it so."""
    merged: dict[str, Mount] = {}
    for mount in (mount for instance in instances for mount in instance.mounts):
        before = merged.setdefault(mount.container_path, mount)
        merged[mount.container_path] = replace(
            mount, read_only=before.read_only and mount.read_only
        )
    return tuple(merged.values())
