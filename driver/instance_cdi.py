"""CDI files of the device-plugin path: one for each Instance whose device is given to containers.

A container gets the same from the answer to Allocate, where kubelet or runtime do not know of CDI.
The name is Akri's `cdiName`, so what is written for it is found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from driver.api import AKRI_GROUP, InstanceName
from driver.cdi import VERSION, encoded, host_edits
from driver.instances import Instance

_PREFIX = f"{AKRI_GROUP}-"
_CLASS = re.compile(r"[A-Za-z]([-_.A-Za-z0-9]*[A-Za-z0-9])?")
"""What CDI takes after the `/` of a kind; a Configuration's name may begin with a digit."""


def file_name(instance: InstanceName) -> str:
    """Name of an Instance's CDI file."""
    return f"{_PREFIX}{instance}.json"


def content(instance: Instance) -> bytes | None:
    """The CDI file of an Instance; None for one that CDI cannot name, or that adds nothing."""
    edits = host_edits(instance.device_specs, instance.mounts)
    if not edits or not _CLASS.fullmatch(instance.configuration):
        return None
    kind, _, device = instance.cdi_name.partition("=")
    devices = [{"name": device, "containerEdits": edits}]
    return encoded({"cdiVersion": VERSION, "kind": kind, "devices": devices})


def left_over(files: Iterable[str], known: Collection[InstanceName]) -> tuple[str, ...]:
    """Files of Instances that are gone."""
    wanted = {file_name(name) for name in known}
    return tuple(name for name in files if name.startswith(_PREFIX) and name not in wanted)
