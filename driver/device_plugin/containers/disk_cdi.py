"""The CDI files of Instances on this node's disk."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from driver.api import DRIVER_NAME, InstanceName
from driver.device_plugin.containers import instance_cdi
from driver.device_plugin.containers.disk_links import Links
from driver.device_plugin.containers.instance_cdi import GivenChange, GivenFile, given_file
from driver.device_plugin.containers.responses import Files
from driver.instances.instances import Instance
from driver.plumbing.disk import Folder, real_path
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import Resolve, with_real_paths

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 8
"""Most files that are checked without a thread: an Allocate usually has one or a few devices."""

OVERTAKEN = "another process wrote it since"
"""A signature that no file has, so that the next check writes the file again."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What this process knows of an Instance's file.

    Attributes:
        instance: The Instance that it was written for.
        content: Content of the file; None if the Instance needs no file.
        signature: Signature of the file after the write; None if there is no file.
    """

    instance: Instance
    content: bytes | None
    signature: object


class InstanceCdiFiles:
    """The CDI files and links of Instances.

    A file is written before its device is given away, kept up to date meanwhile, and removed when
    the Instance is gone. At its start the driver writes the files of all slots that this node
    holds, so no file needs to survive a reboot.

    During an update of the driver two processes write the same files, and each may know something
    about a device that the other does not know yet. Each writes what it knows. If a write fails,
    the process removes the old file if it wrote that file itself or found it at its start. It
    leaves a file that another process wrote since, unless the file leads to another device. Files
    of a deleted Instance are removed by any process that has known the Instance.

    Create it before the Instances are listed: a file that is found then, without an Instance in the
    list, belongs to an Instance that is gone.
    """

    def __init__(self, folder: Folder, links: Links, resolve: Resolve = real_path) -> None:
        """Create; `resolve` resolves the links of a path of the host."""
        self._resolve = resolve
        self._folder = folder
        self._links = links
        # Files of an earlier process, or of one that still runs.
        self._found: Mapping[InstanceName, object] = {}
        self._heard: set[InstanceName] = set()
        # A cache of the files' state. Losing it costs reads of the disk.
        self._written: dict[InstanceName, _Written] = {}
        self._withdrawn: set[InstanceName] = set()
        self._changes: list[GivenChange] = []
        self._writing = threading.Lock()
        try:
            self._find()
        except OSError as error:
            logger.warning("CDI files of an earlier process cannot be listed error=%s", error)

    async def write(self, instances: Iterable[Instance]) -> Mapping[InstanceName, Files]:
        """Write the missing files, and return all.

        An Instance that is missing in the result must not be given away. If only the CDI file of an
        Instance cannot be written, it is given by its links alone.
        """
        wanted = tuple(instances)
        known = list(map(self._as_it_was, wanted)) if len(wanted) <= AT_ONCE else [None]
        if None in known:
            known = await self._locked(lambda: self._write_all(wanted))
        return {w.instance.name: self._files(w) for w in known if w is not None}

    async def follow(
        self, held: Mapping[InstanceName, bool], where: DeviceLocator
    ) -> tuple[GivenChange, ...]:
        """Update the files of Instances that are given away; returns what changed.

        Args:
            held: Instances of which this node holds slots, and whether several nodes may see each.
            where: The current locations of the devices.

        Raises:
            OSError: A file cannot be written or removed. Call again.
        """
        return await self._locked(lambda: self._follow(held, where))

    async def _locked(self, work: Callable[[], T]) -> T:
        """Run the work in a thread, under the lock of the cache."""

        def locked() -> T:
            with self._writing:
                return work()

        return await asyncio.to_thread(locked)

    def _files(self, written: _Written) -> Files:
        instance = written.instance
        name = instance.cdi_name if written.signature is not None else ""
        return Files(cdi_name=name, links=self._links.folder(instance.name))

    def _write_all(self, instances: Iterable[Instance]) -> list[_Written | None]:
        return [self._as_it_was(instance) or self._tried(instance) for instance in instances]

    def _tried(self, instance: Instance) -> _Written | None:
        try:
            return self._write(instance)
        except OSError as error:
            logger.warning(
                "links not written, so the device is not given instance=%s error=%s",
                instance.name,
                error,
            )
            return None

    def _as_it_was(self, instance: Instance) -> _Written | None:
        """The cached state for this Instance, if the files on the disk still match it."""
        before = self._written.get(instance.name)
        if before is None or before.instance != instance:
            return None
        if not self._links.have_targets(instance.name, instance_cdi.links(instance)):
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

    def _write(self, instance: Instance) -> _Written:
        content = instance_cdi.content(instance)
        self._links.write(instance.name, instance_cdi.links(instance))
        signature = None if content is None else self._tried_to_put(instance.name, content)
        if signature is None:
            self._remove_outdated(instance.name)
        written = _Written(instance, content, signature)
        self._written[instance.name] = written
        self._withdrawn.discard(instance.name)
        return written

    def _tried_to_put(self, instance: InstanceName, content: bytes) -> object:
        try:
            return self._put(instance, content)
        except OSError as error:
            logger.warning("CDI file not written instance=%s error=%s", instance, error)
            return None

    def _put(self, instance: InstanceName, content: bytes) -> object:
        """Write a file, unless it has this content already; returns its signature."""
        name = instance_cdi.file_name(instance)
        if (signature := self._look(name, content)) is not None:
            return signature
        self._folder.write(name, content)
        return self._look(name, content) or OVERTAKEN

    def _look(self, name: str, content: bytes) -> object:
        """The signature of a file with this content; None if its content differs."""
        signature = self._folder.signature(name)
        return signature if self._folder.read(name) == content else None

    def _remove_outdated(self, instance: InstanceName) -> None:
        """Remove an outdated file, unless another process wrote it."""
        name, before = instance_cdi.file_name(instance), self._written.get(instance)
        own = (self._found.get(instance), before.signature if before else None)
        if self._folder.signature(name) in own:
            self._folder.remove(name)

    def _follow(
        self, held: Mapping[InstanceName, bool], where: DeviceLocator
    ) -> tuple[GivenChange, ...]:
        failure: OSError | None = None
        for name in sorted(held):
            instance = where.named(name)
            try:
                change = (
                    self._renew(with_real_paths(instance, self._resolve), where)
                    if instance
                    else self._withdraw_if(name, where, shared=held[name])
                )
            except OSError as error:
                failure = error  # The other Instances are updated nevertheless.
            else:
                self._changes += [change] if change else []
        if failure is not None:
            raise failure
        changes, self._changes = tuple(self._changes), []
        return changes

    def _renew(self, instance: Instance, where: DeviceLocator) -> GivenChange | None:
        if self._as_it_was(instance) is not None:
            return None
        given = self._given(instance.name)
        was_withdrawn = instance.name in self._withdrawn
        if self._write(instance).signature is None:
            self._remove_if_elsewhere(instance.name, where)
        after = given_file(instance_cdi.content(instance))
        before = self._followed(given, after)
        changed = was_withdrawn or (before is not None and before != after)
        return GivenChange(instance.name, before, after) if changed else None

    def _followed(self, before: GivenFile | None, after: GivenFile | None) -> GivenFile | None:
        """The earlier file with its links resolved, if they lead to the current paths.

        An earlier driver wrote links, which the runtime followed: containers have the same node.
        """
        if before is None or after is None:
            return before
        leads = ((path, self._resolve(path)) for path in before.paths)
        paths = tuple(real if real in after.paths else path for path, real in leads)
        return replace(before, paths=paths)

    def _remove_if_elsewhere(self, name: InstanceName, where: DeviceLocator) -> None:
        """Remove a file that leads to another device, whichever process wrote it."""
        given = self._given(name)
        if given is not None and instance_cdi.rival(name, given, where):
            self._folder.remove(instance_cdi.file_name(name))

    def _withdraw_if(
        self, name: InstanceName, where: DeviceLocator, *, shared: bool
    ) -> GivenChange | None:
        if name in self._withdrawn:
            return None
        before = self._given(name)
        why = instance_cdi.withdrawal(name, before, where, shared=shared)
        if not why:
            return None
        self._links.break_links(name, why)
        self._folder.remove(instance_cdi.file_name(name))
        self._written.pop(name, None)
        self._withdrawn.add(name)
        return GivenChange(name, before, None, why)

    def _given(self, name: InstanceName) -> GivenFile | None:
        return given_file(self._folder.read(instance_cdi.file_name(name)))

    async def keep(self, known: Collection[InstanceName]) -> None:
        """Remove the files of all Instances that this process has known, except these."""
        await self._locked(lambda: self._keep(frozenset(known)))

    def _keep(self, known: frozenset[InstanceName]) -> None:
        self._heard |= known | self._written.keys()
        for gone in self._written.keys() - known:
            del self._written[gone]
        self._withdrawn &= known
        try:
            for gone in self._heard - known:
                self._folder.remove(instance_cdi.file_name(gone))
            self._links.remove(self._heard - known)
        except OSError as error:
            logger.warning("files of deleted Instances cannot be removed error=%s", error)
        else:
            self._heard = set(known)

    def _find(self) -> None:
        files = {n: f for f in self._folder.names() if (n := instance_cdi.instance_of(f))}
        self._found = {name: self._folder.signature(file) for name, file in files.items()}
        self._heard = self._found.keys() | self._links.instances()


def instance_files(cdi_root: Path, resolve: Resolve = real_path) -> InstanceCdiFiles:
    """The files in the runtime's folder of CDI files; both folders are empty after a reboot."""
    return InstanceCdiFiles(Folder(cdi_root, lasting=False), Links(cdi_root / DRIVER_NAME), resolve)
