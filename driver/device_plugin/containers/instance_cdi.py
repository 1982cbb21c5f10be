"""CDI files of the device-plugin path: one for each Instance whose device is given to containers.

The kubelet keeps what it was answered for a container, and asks nobody when it starts that one
anew. So the answer names files and links that are kept right (`disk_cdi`, `disk_links`):

    cdi_devices ──► the CDI file ──► environment, device nodes and mounts as they are now
    devices, mounts ──► host paths that are links ──► where the device is now, or nowhere

Runtimes that do not know of CDI follow the links, too. A container that is started while its device
is away is refused by the runtime: its CDI device is missing, and its links lead nowhere.

The CDI name is Akri's `cdiName`, so what is written for it is found.
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
"""What CDI takes after the `/` of a kind; a Configuration's name may begin with a digit."""


def file_name(instance: InstanceName) -> str:
    """Name of an Instance's CDI file."""
    return f"{_PREFIX}{instance}{_SUFFIX}"


def instance_of(file: str) -> InstanceName | None:
    """The Instance that a file of this name is of; None if it is another's file."""
    if not (file.startswith(_PREFIX) and file.endswith(_SUFFIX)):
        return None
    return InstanceName(file.removeprefix(_PREFIX).removesuffix(_SUFFIX))


def content(instance: Instance) -> bytes | None:
    """The CDI file of an Instance; None for one that CDI cannot name, or that adds nothing."""
    told = variables(container_properties(instance), instance.hash)
    env = [f"{name}={value}" for name, value in told.items()]
    host = host_edits(instance.device_specs, instance.mounts)
    edits = {**({"env": env} if env else {}), **host}
    if not edits or not _CLASS.fullmatch(instance.configuration):
        return None
    kind, _, device = instance.cdi_name.partition("=")
    devices = [{"name": device, "containerEdits": edits}]
    return encoded({"cdiVersion": VERSION, "kind": kind, "devices": devices})


def links(instance: Instance) -> Mapping[str, str]:
    """Names of links, and where they lead: to each device node and mount, in order."""
    return {
        **{f"device-{n}": spec.host_path for n, spec in enumerate(instance.device_specs)},
        **{f"mount-{n}": mount.host_path for n, mount in enumerate(instance.mounts)},
    }


@dataclass(frozen=True, slots=True)
class GivenFile:
    """What an Instance's CDI file says.

    Attributes:
        paths: Of device nodes on the host.
        variables: Values of the environment, by name.
        is_of_host: Whether containers get anything but the environment.
    """

    paths: tuple[str, ...]
    variables: Mapping[str, str]
    is_of_host: bool


def given_file(text: bytes | None) -> GivenFile | None:
    """Read what `content` wrote, in this or another version; None if it is something else."""
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
    """What containers get of an Instance from now on, when they are started anew.

    Attributes:
        before: What they got; None if nothing was known of it.
        after: None while the Instance is withdrawn.
        withdrawn: Why it is; "" if it is not.
    """

    instance: InstanceName
    before: GivenFile | None
    after: GivenFile | None
    withdrawn: str = ""


def withdrawal(
    name: InstanceName, given: GivenFile | None, where: DeviceLocator, *, shared: bool
) -> str:
    """Why no container may be given an Instance that is not reported; "" if it may as before.

    Args:
        name: Of an Instance that this node holds a slot of.
        given: What its file says; None if it has none.
        where: What is known of the devices.
        shared: Whether several nodes may see it.
    """
    is_address = shared and given is not None and not given.is_of_host
    return where.why_withheld(_place(name, given), is_address=is_address)


def rival(name: InstanceName, given: GivenFile, where: DeviceLocator) -> str:
    """Which other device is where an Instance's file leads; "" if none is."""
    return where.rival(_place(name, given))


def _place(name: InstanceName, given: GivenFile | None) -> PreviousLocation:
    return PreviousLocation(
        configuration=ConfigurationName(name.rpartition("-")[0]),
        instance=name,
        paths=given.paths if given else (),
        values=given.variables.values() if given else (),
    )
