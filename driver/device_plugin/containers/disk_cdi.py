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
"""Files that are looked at without a thread: an Allocate is about one device, or a few."""

OVERTAKEN = "another process wrote it since"
"""A signature that no file has, so that the next look writes it again."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What is known of an Instance's file.

    Attributes:
        instance: For what it was written.
        content: None if there is to be no file.
        signature: How it looked then; None if there is none.
    """

    instance: Instance
    content: bytes | None
    signature: object


class InstanceCdiFiles:
    """Written before a device is given, kept right while it is, removed when its Instance is gone.

    A start of the driver writes those of all slots that this node holds, so that no file needs to
    outlive a boot.

    During an update of the driver two processes write the same files, and each may know of a device
    what the other does not know yet. Each writes what it knows. What it cannot write it removes, if
    it wrote the file itself or found it when it started; a file that another process wrote since is
    that one's, unless it leads to another device. What an Instance had is removed by a process that
    has heard of the Instance.

    It is to be made before the Instances are listed: what is found then, of an Instance that is not
    listed, is of one that is gone.
    """

    def __init__(self, folder: Folder, links: Links, resolve: Resolve = real_path) -> None:
        """`resolve` says where the host's paths lead."""
        self._resolve = resolve
        self._folder = folder
        self._links = links
        # Of an earlier process, or of one that still runs.
        self._found: Mapping[InstanceName, object] = {}
        self._heard: set[InstanceName] = set()
        # What this process knows of files; losing it costs looks at the disk.
        self._written: dict[InstanceName, _Written] = {}
        self._withdrawn: set[InstanceName] = set()
        self._changes: list[GivenChange] = []
        self._writing = threading.Lock()
        try:
            self._find()
        except OSError as error:
            logger.warning("what an earlier process gave cannot be listed error=%s", error)

    async def write(self, instances: Iterable[Instance]) -> Mapping[InstanceName, Files]:
        """Write what is not there, and tell what is; an Instance without it must not be given.

        One that has no CDI file because that cannot be written, is given by its links alone.
        """
        wanted = tuple(instances)
        known = list(map(self._as_it_was, wanted)) if len(wanted) <= AT_ONCE else [None]
        if None in known:
            known = await self._in_turn(lambda: self._write_all(wanted))
        return {w.instance.name: self._files(w) for w in known if w is not None}

    async def follow(
        self, held: Mapping[InstanceName, bool], where: DeviceLocator
    ) -> tuple[GivenChange, ...]:
        """Keep right what was given of Instances; returns what changed.

        Args:
            held: Those that this node holds slots of, and whether several nodes may see each.
            where: Where the devices are now.

        Raises:
            OSError: If something cannot be written or removed; call again.
        """
        return await self._in_turn(lambda: self._follow(held, where))

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """One piece of work at a time, in a thread: what is known of files is not for two."""

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
            logger.warning("device not given instance=%s error=%s", instance.name, error)
            return None

    def _as_it_was(self, instance: Instance) -> _Written | None:
        """What was written for this Instance, if it is still there; that is a quick look."""
        before = self._written.get(instance.name)
        if before is None or before.instance != instance:
            return None
        if not self._links.do_lead(instance.name, instance_cdi.links(instance)):
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
        self._links.lead(instance.name, instance_cdi.links(instance))
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
        """Write a file, unless it says this already; returns how it looks now."""
        name = instance_cdi.file_name(instance)
        if (signature := self._look(name, content)) is not None:
            return signature
        self._folder.write(name, content)
        return self._look(name, content) or OVERTAKEN

    def _look(self, name: str, content: bytes) -> object:
        """How a file looks that says this; None for another."""
        signature = self._folder.signature(name)
        return signature if self._folder.read(name) == content else None

    def _remove_outdated(self, instance: InstanceName) -> None:
        """What is not written anew is not to be read, but for what is another process's."""
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
                failure = error  # It keeps no other from following its device.
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
        """With links, which an earlier driver wrote, that lead to where the device is now.

        The runtime followed them: containers have the same device node.
        """
        if before is None or after is None:
            return before
        leads = ((path, self._resolve(path)) for path in before.paths)
        paths = tuple(real if real in after.paths else path for path, real in leads)
        return replace(before, paths=paths)

    def _remove_if_elsewhere(self, name: InstanceName, where: DeviceLocator) -> None:
        """Whoever wrote it: nobody is to be started with another device."""
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
        self._links.lead_nowhere(name, why)
        self._folder.remove(instance_cdi.file_name(name))
        self._written.pop(name, None)
        self._withdrawn.add(name)
        return GivenChange(name, before, None, why)

    def _given(self, name: InstanceName) -> GivenFile | None:
        return given_file(self._folder.read(instance_cdi.file_name(name)))

    async def keep(self, known: Collection[InstanceName]) -> None:
        """Remove what is of all Instances that this process has heard of, but these."""
        await self._in_turn(lambda: self._keep(frozenset(known)))

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
            logger.warning("what is of Instances that are gone is not removed error=%s", error)
        else:
            self._heard = set(known)

    def _find(self) -> None:
        files = {n: f for f in self._folder.names() if (n := instance_cdi.instance_of(f))}
        self._found = {name: self._folder.signature(file) for name, file in files.items()}
        self._heard = self._found.keys() | self._links.instances()


def instance_files(cdi_root: Path, resolve: Resolve = real_path) -> InstanceCdiFiles:
    """Those where the container runtime looks for them; both folders are empty after a boot."""
    return InstanceCdiFiles(Folder(cdi_root, lasting=False), Links(cdi_root / DRIVER_NAME), resolve)
