"""Container responses: what the kubelet gives to a container for its devices.

One for each container, with everything merged, since the kubelet reads no second one.
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
class Refused:
    """Why nothing is given; the sentence ends up in the pod's status."""

    sentence: str


def container_response(
    instances: Iterable[Instance], files: Mapping[InstanceName, Files]
) -> ContainerResponse | Refused:
    """Merge what a container gets for these Instances; one that comes twice gives once.

    Args:
        instances: As discovery knows them now.
        files: What stands on the disk for them. Paths of the host are those of links where an
            Instance has them: the kubelet keeps this answer for as long as the container's pod.
    """
    once = [i for _, i in sorted({i.name: i for i in instances}.items())]
    for instance in once:
        if problem := unusable(instance):
            return Refused(f"Instance {instance.name} {problem}")
    if clashing := clash((f"Instance {i.name}", i) for i in once):
        return Refused(clashing)
    linked = [_linked(i, files[i.name]) if i.name in files else i for i in once]
    # The first Instance by name last: of two plain variables the runtime keeps the later one.
    names = [files[i.name].cdi_name for i in reversed(once) if i.name in files]
    return ContainerResponse(
        environment=_environment(once),
        mounts=tuple(merged_mounts(m for i in linked for m in i.mounts).values()),
        device_specs=tuple(merged_specs(s for i in linked for s in i.device_specs).values()),
        cdi_names=tuple(filter(None, names)),
    )


def _linked(instance: Instance, files: Files) -> Instance:
    """The Instance with the paths of its links in place of those of the host."""
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
    """Properties that can be variables; the first Instance by name gives the plain ones."""
    environment: dict[str, str] = {}
    for instance in instances:
        environment = {**variables(container_properties(instance), instance.hash), **environment}
    return environment
