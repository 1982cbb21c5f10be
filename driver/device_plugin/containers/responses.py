"""Container responses: what the kubelet gives to a container for its devices.

There is one response for each container, merged over its devices: the kubelet reads only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from driver.api import InstanceName
from driver.devices import DeviceSpec, Mount, merged_mounts, merged_specs
from driver.instances.instances import Instance
from driver.instances.unusable_properties import container_properties
from driver.preparing.files.cdi import variables
from driver.preparing.grants.claims import clash, unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResponse:
    """What a container gets.

    Attributes:
        environment: Each property under its name, and under its name with the Instance's hash.
        cdi_names: Qualified names of CDI devices. A kubelet without CDI ignores them. In a runtime
            with CDI they override the same variable, node or mount.
    """

    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    cdi_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """The files of an Instance on the disk, which follow its device: see `instance_cdi`.

    Attributes:
        cdi_name: Qualified name of the CDI device; "" without a CDI file.
        links: The folder of its links.
    """

    cdi_name: str
    links: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused Allocate. The kubelet shows the sentence in the status of the pod."""

    sentence: str


def container_response(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> ContainerResponse | Refused:
    """Merge what a container gets for these Instances; a repeated Instance counts once.

    Args:
        instances: The Instances as discovery reports them now.
        files: Their files on the disk. The response has the paths of links if an Instance has
            links, since the kubelet keeps this answer for the life of the pod.
    """
    once = [i for _, i in sorted({i.name: i for i in instances}.items())]
    for instance in once:
        if problem := unusable(instance):
            return Refused(f"Instance {instance.name} {problem}")
    if clashing := clash((f"Instance {i.name}", i) for i in once):
        return Refused(clashing)
    linked = [_linked(i, files[i.name]) if i.name in files else i for i in once]
    # The first Instance by name comes last: the runtime keeps the later of two plain variables.
    names = [files[i.name].cdi_name for i in reversed(once) if i.name in files]
    return ContainerResponse(
        environment=_environment(once),
        mounts=tuple(merged_mounts(m for i in linked for m in i.mounts).values()),
        device_specs=tuple(merged_specs(s for i in linked for s in i.device_specs).values()),
        cdi_names=tuple(filter(None, names)),
    )


def _linked(instance: Instance, files: Files) -> Instance:
    """The Instance with the paths of its links instead of those of the host."""
    return replace(
        instance,
        device_specs=tuple(
            replace(spec, host_path=f"{files.links}/device-{number}")
            for number, spec in enumerate(instance.device_specs)
        ),
        mounts=tuple(
            replace(mount, host_path=f"{files.links}/mount-{number}")
            for number, mount in enumerate(instance.mounts)
        ),
    )


def _environment(instances: Iterable[Instance]) -> dict[str, str]:
    """Properties that can be variables; plain names are those of the first Instance by name."""
    environment: dict[str, str] = {}
    for instance in instances:
        environment = {**variables(container_properties(instance), instance.hash), **environment}
    return environment
