"""The CDI files of Instances on this node's disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping

from driver import instance_cdi
from driver.api import InstanceName
from driver.disk import Folder
from driver.instances import Instance

logger = logging.getLogger(__name__)


class InstanceCdiFiles:
    """Written before a device is given, removed when its Instance is gone."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._written: dict[InstanceName, tuple[bytes, object]] = {}

    async def write(self, instances: Iterable[Instance]) -> Mapping[InstanceName, str]:
        """Write those that are not there; returns the CDI names of all that are.

        One that cannot be written has no name: containers get the device without CDI.
        """
        return await asyncio.to_thread(self._write_all, tuple(instances))

    def _write_all(self, instances: Iterable[Instance]) -> dict[InstanceName, str]:
        return {i.name: i.cdi_name for i in instances if self._is_written(i)}

    def _is_written(self, instance: Instance) -> bool:
        content, name = instance_cdi.content(instance), instance_cdi.file_name(instance.name)
        if content is None:
            return False
        try:
            if self._written.get(instance.name) != (content, self._folder.signature(name)):
                self._folder.write(name, content)
                self._written[instance.name] = (content, self._folder.signature(name))
        except OSError as error:
            logger.warning("CDI file not written instance=%s error=%s", instance.name, error)
            return False
        return True

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
