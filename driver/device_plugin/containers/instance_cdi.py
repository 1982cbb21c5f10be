"""CDI files of the device-plugin path: one for each Instance whose device is given to containers.

The kubelet keeps the answer to Allocate for the life of a container, and does not ask again when it
restarts the container. So the answer names files and links that are kept up to date (`disk_cdi`,
`disk_links`):

    cdi_devices ──► the CDI file ──► current environment, device nodes and mounts
    devices, mounts ──► host paths that are links ──► current path of the device, or dangling

Runtimes without CDI follow the links. The runtime refuses to start a container while its device is
absent: its CDI device is missing, and its links are dangling.

The CDI name is Akri's `cdiName`, so a runtime finds the file under either name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver.api import AKRI_GROUP, ConfigurationName, InstanceName
from driver.instances.instances import Instance
from driver.instances.unusable_properties import container_properties
from driver.preparing.files.cdi import VERSION, encoded, host_edits, variables
from driver.preparing.grants.device_locators import DeviceLocator, PreviousLocation

_PREFIX, _SUFFIX = f"{AKRI_GROUP}-", ".json"
_CLASS = re.compile(r"[A-Za-z]([-_.A-Za-z0-9]*[A-Za-z0-9])?")
"""A class of CDI, after the `/` of a kind. A Configuration's name may begin with a digit, and is
then no class."""


def file_name(instance: InstanceName) -> str:
    """Name of an Instance's CDI file."""
    return f"{_PREFIX}{instance}{_SUFFIX}"


def instance_of(file: str) -> InstanceName | None:
    """The Instance of a file name; None if the file does not belong to an Instance."""
    if not (file.startswith(_PREFIX) and file.endswith(_SUFFIX)):
        return None
    return InstanceName(file.removeprefix(_PREFIX).removesuffix(_SUFFIX))


def content(instance: Instance) -> bytes | None:
    """The CDI file of an Instance; None if CDI cannot name it, or if the file would be empty."""
    environment = variables(container_properties(instance), instance.hash)
    env = [f"{name}={value}" for name, value in environment.items()]
    host = host_edits(instance.device_specs, instance.mounts)
    edits = {**({"env": env} if env else {}), **host}
    if not edits or not _CLASS.fullmatch(instance.configuration):
        return None
    kind, _, device = instance.cdi_name.partition("=")
    devices = [{"name": device, "containerEdits": edits}]
    return encoded({"cdiVersion": VERSION, "kind": kind, "devices": devices})


def links(instance: Instance) -> Mapping[str, str]:
    """Names and targets of the links to each device node and mount, in order."""
    return {
        **{f"device-{n}": spec.host_path for n, spec in enumerate(instance.device_specs)},
        **{f"mount-{n}": mount.host_path for n, mount in enumerate(instance.mounts)},
    }


@dataclass(frozen=True, slots=True)
class GivenFile:
    """The content of an Instance's CDI file.

    Attributes:
        paths: Paths of the device nodes on the host.
        variables: Values of the environment, by name.
        is_of_host: Whether containers get device nodes or mounts besides the environment.
    """

    paths: tuple[str, ...]
    variables: Mapping[str, str]
    is_of_host: bool


def given_file(text: bytes | None) -> GivenFile | None:
    """Parse what `content` wrote, in this or another version; None if it is anything else."""
    if text is None:
        return None
    try:
        (device,) = json.loads(text)["devices"]
        edits = device["containerEdits"]
        nodes, mounts = edits.get("deviceNodes", ()), edits.get("mounts", ())
        pairs = (variable.partition("=") for variable in edits.get("env", ()))
        return GivenFile(
            paths=tuple(node["hostPath"] for node in nodes),
            variables={name: value for name, _, value in pairs},
            is_of_host=bool(nodes or mounts),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class GivenChange:
    """A change of what containers get of an Instance at their next start.

    Attributes:
        before: The content before; None if it was not known.
        after: The content now; None while the Instance is withdrawn.
        withdrawn: Why the Instance is withdrawn; "" if it is not.
    """

    instance: InstanceName
    before: GivenFile | None
    after: GivenFile | None
    withdrawn: str = ""


def withdrawal(
    name: InstanceName, given: GivenFile | None, where: DeviceLocator, *, shared: bool
) -> str:
    """Why no container may get an Instance that is not reported; "" if containers may get it.

    Args:
        name: Name of an Instance of which this node holds a slot.
        given: The content of its file; None if it has none.
        where: The current locations of the devices.
        shared: Whether several nodes may see it.
    """
    is_address = shared and given is not None and not given.is_of_host
    return where.why_withheld(_place(name, given), is_address=is_address)


def rival(name: InstanceName, given: GivenFile, where: DeviceLocator) -> str:
    """The other device at the paths of an Instance's file; "" if there is none."""
    return where.rival(_place(name, given))


def _place(name: InstanceName, given: GivenFile | None) -> PreviousLocation:
    return PreviousLocation(
        configuration=ConfigurationName(name.rpartition("-")[0]),
        instance=name,
        paths=given.paths if given else (),
        values=given.variables.values() if given else (),
    )
