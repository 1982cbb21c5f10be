"""Container responses: what the kubelet gives to a container for its devices.

One for each container, with everything merged, since the kubelet reads no second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from driver.api import InstanceName
from driver.devices import DeviceSpec, Mount, merged_mounts, merged_specs
from driver.instances.instances import Instance
from driver.preparing.files.cdi import variables
from driver.preparing.grants.claims import clash, unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResponse:
    """What a container gets.

    Attributes:
        environment: Each property under its name and under its name with the Instance's hash.
        cdi_names: Qualified names of CDI devices. A kubelet that does not know of them ignores
            them, and a runtime that does lets them win over the same variable, node or mount.
    """

    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    cdi_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """What stands on the disk for an Instance, and follows it: see `instance_cdi`.

    Attributes:
        cdi_name: Qualified; "" without a CDI file.
        links: The folder of its links.
    """

    cdi_name: str
    links: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a container cannot have these devices; one sentence for the kubelet."""

    sentence: str


def container_response(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> ContainerResponse | Unusable:
    """Merge what a container gets for these Instances; one that comes twice gives once.

    Args:
        instances: As discovery knows them now.
        files: What stands on the disk for them. Paths of the host are those of links where an
            Instance has them: the kubelet keeps this answer for as long as the container's pod.
    """
    once = [i for _, i in sorted({i.name: i for i in instances}.items())]
    for instance in once:
        if problem := unusable(instance):
            return Unusable(f"Instance {instance.name} {problem}")
    if clashing := clash((f"Instance {i.name}", i) for i in once):
        return Unusable(clashing)
    return ContainerResponse(
        environment=_environment(once),
        mounts=_mounts(once, files),
        device_specs=_device_specs(once, files),
        cdi_names=_cdi_names(once, files),
    )


def _cdi_names(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> tuple[str, ...]:
    """The first Instance by name last: of two plain variables the runtime keeps the later one."""
    named = [files[i.name].cdi_name for i in instances if i.name in files]
    return tuple(name for name in reversed(named) if name)


def _host_path(
    path: str, link: str, instance: InstanceName, files: Mapping[InstanceName, Files]
) -> str:
    return f"{files[instance].links}/{link}" if instance in files else path


def _environment(instances: Iterable[Instance]) -> dict[str, str]:
    """Properties that can be variables; the first Instance by name gives the plain ones."""
    environment: dict[str, str] = {}
    for instance in instances:
        environment = {**variables(instance.properties, instance.hash), **environment}
    return environment


def _device_specs(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> tuple[DeviceSpec, ...]:
    linked = (
        replace(spec, host_path=_host_path(spec.host_path, f"device-{number}", i.name, files))
        for i in instances
        for number, spec in enumerate(i.device_specs)
    )
    return tuple(merged_specs(linked).values())


def _mounts(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> tuple[Mount, ...]:
    linked = (
        replace(mount, host_path=_host_path(mount.host_path, f"mount-{number}", i.name, files))
        for i in instances
        for number, mount in enumerate(i.mounts)
    )
    return tuple(merged_mounts(linked).values())
