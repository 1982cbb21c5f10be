"""The CDI files of Instances on this node's disk."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from driver import instance_cdi
from driver.api import InstanceName
from driver.disk import Folder
from driver.instances import Instance

logger = logging.getLogger(__name__)

AT_ONCE = 8
"""Files that are looked at without a thread: an Allocate is about one device, or a few."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What is known of an Instance's file.

    Attributes:
        instance: For what it was written.
        content: None if there is to be no file.
        signature: How it looked then.
    """

    instance: Instance
    content: bytes | None
    signature: object


class InstanceCdiFiles:
    """Written before a device is given, removed when its Instance is gone.

    A start of the driver writes those of all slots that this node holds, so that no file needs to
    outlive a boot.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._written: dict[InstanceName, _Written] = {}
        self._writing = threading.Lock()

    async def write(self, instances: Iterable[Instance]) -> Mapping[InstanceName, str]:
        """Write those that are not there; returns the CDI names of all that are.

        One that cannot be written has no name: containers get the device without CDI.
        """
        wanted = tuple(instances)
        known = list(map(self._as_it_was, wanted)) if len(wanted) <= AT_ONCE else [None]
        if None in known:
            known = await asyncio.to_thread(self._write_all, wanted)
        return {w.instance.name: w.instance.cdi_name for w in known if w and w.content is not None}

    def _write_all(self, instances: Iterable[Instance]) -> list[_Written | None]:
        with self._writing:  # Two writers of one file would take each other's half-written one.
            return [self._as_it_was(instance) or self._write(instance) for instance in instances]

    def _as_it_was(self, instance: Instance) -> _Written | None:
        """What was written for this very Instance, if it is still there; that is a quick look."""
        before = self._written.get(instance.name)
        if before is None or before.instance is not instance:
            return None
        if before.content is None:
            return before
        signature = self._signature(instance_cdi.file_name(instance.name))
        return before if signature is not None and signature == before.signature else None

    def _signature(self, name: str) -> object:
        try:
            return self._folder.signature(name)
        except OSError:
            return None

    def _write(self, instance: Instance) -> _Written | None:
        content = instance_cdi.content(instance)
        try:
            signature = None if content is None else self._put(instance.name, content)
        except OSError as error:
            logger.warning("CDI file not written instance=%s error=%s", instance.name, error)
            return None
        self._written[instance.name] = _Written(instance, content, signature)
        return self._written[instance.name]

    def _put(self, instance: InstanceName, content: bytes) -> object:
        """Write a file, unless it is there as it was written; returns how it looks now."""
        before, name = self._written.get(instance), instance_cdi.file_name(instance)
        found = (content, self._folder.signature(name))
        if before is None or found != (before.content, before.signature):
            self._folder.write(name, content)
        return self._folder.signature(name)

    async def keep(self, known: Collection[InstanceName]) -> None:
        """Remove the files of all other Instances."""
        await asyncio.to_thread(self._keep, frozenset(known))

    def _keep(self, known: frozenset[InstanceName]) -> None:
        for gone in self._written.keys() - known:
            del self._written[gone]
        for name in instance_cdi.left_over(self._folder.names(), known):
            try:
                self._folder.remove(name)
            except OSError as error:
                logger.warning("CDI file not removed file=%s error=%s", name, error)
