"""The CDI files and links of Instances on this node's disk."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from driver.api import DRIVER_NAME, InstanceName
from driver.device_plugin.containers import instance_cdi
from driver.device_plugin.containers.instance_cdi import GivenChange, GivenFile, given_file
from driver.device_plugin.containers.responses import Files
from driver.instances.instances import Instance
from driver.plumbing.disk import Folder, real_path
from driver.preparing.grants.renewals import with_real_paths
from driver.preparing.grants.whereabouts import Whereabouts


class Links:
    """A folder of links for each Instance: containers find what they were given where it was.

    <root>/<Instance>/device-0 ──► /dev/video2, or nowhere

    A link that leads nowhere says why in its target, which runtimes repeat when they fail to
    follow it. The folder is in memory, as that of CDI files is: after a reboot no link leads to
    what was there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, instance: InstanceName) -> str:
        """Where an Instance's links are, as the host and this process know it."""
        return str(self._root / instance)

    def do_lead(self, instance: InstanceName, targets: Mapping[str, str]) -> bool:
        """Whether an Instance's links lead there already."""
        folder = self._root / instance
        return all(_target(folder / name) == target for name, target in targets.items())

    def lead(self, instance: InstanceName, targets: Mapping[str, str]) -> None:
        """Let an Instance's links lead there; those that it had besides lead nowhere.

        Raises:
            OSError: If one cannot be written.
        """
        others = {
            name: _nowhere(instance, "has no such part now") for name in self._names(instance)
        }
        for name, target in {**others, **targets}.items():
            self._point(self._root / instance / name, target)

    def lead_nowhere(self, instance: InstanceName, why: str) -> None:
        """Let no container be started with these links. Raises OSError."""
        for name in self._names(instance):
            self._point(self._root / instance / name, _nowhere(instance, why))

    def remove_others(self, known: Collection[InstanceName]) -> None:
        """Remove the links of all other Instances. Raises OSError."""
        for name in set(_listed(self._root)) - {str(instance) for instance in known}:
            shutil.rmtree(self._root / name)

    def _names(self, instance: InstanceName) -> list[str]:
        return [n for n in _listed(self._root / instance) if not n.startswith(".")]

    def _point(self, link: Path, target: str) -> None:
        if _target(link) == target:
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = link.with_name(f".{link.name}")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        if link.is_dir() and not link.is_symlink():
            link.rmdir()  # A runtime makes a folder of a mount that is not there.
        temporary.replace(link)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _target(link: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(link)
    return None


def _nowhere(instance: InstanceName, why: str) -> str:
    return f"/dev/moorage.dev: the device of Instance {instance} {why}"


logger = logging.getLogger(__name__)

T = TypeVar("T")

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
    """Written before a device is given, kept right while it is, removed when its Instance is gone.

    A start of the driver writes those of all slots that this node holds, so that no file needs to
    outlive a boot.
    """

    def __init__(self, folder: Folder, links: Links) -> None:
        self._folder = folder
        self._links = links
        # What this process knows of files; losing it costs looks at the disk.
        self._written: dict[InstanceName, _Written] = {}
        self._withdrawn: set[InstanceName] = set()
        self._changes: list[GivenChange] = []
        self._writing = threading.Lock()

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
        self, held: Mapping[InstanceName, bool], where: Whereabouts
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
        """Two writers of one file would take each other's half-written one."""

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
        content, signature = instance_cdi.content(instance), None
        self._links.lead(instance.name, instance_cdi.links(instance))
        try:
            signature = None if content is None else self._put(instance.name, content)
        except OSError as error:
            self._folder.remove(instance_cdi.file_name(instance.name))
            logger.warning("CDI file not written instance=%s error=%s", instance.name, error)
        written = _Written(instance, content, signature)
        self._written[instance.name] = written
        self._withdrawn.discard(instance.name)
        return written

    def _put(self, instance: InstanceName, content: bytes) -> object:
        """Write a file, unless it is there as it was written; returns how it looks now."""
        before, name = self._written.get(instance), instance_cdi.file_name(instance)
        found = (content, self._folder.signature(name))
        if before is None or found != (before.content, before.signature):
            self._folder.write(name, content)
        return self._folder.signature(name)

    def _follow(
        self, held: Mapping[InstanceName, bool], where: Whereabouts
    ) -> tuple[GivenChange, ...]:
        failure: OSError | None = None
        for name in sorted(held):
            instance = where.named(name)
            try:
                change = (
                    self._renew(with_real_paths(instance, real_path))
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

    def _renew(self, instance: Instance) -> GivenChange | None:
        if self._as_it_was(instance) is not None:
            return None
        before = self._given(instance.name)
        was_withdrawn = instance.name in self._withdrawn
        self._write(instance)
        after = given_file(instance_cdi.content(instance))
        changed = was_withdrawn or (before is not None and before != after)
        return GivenChange(instance.name, before, after) if changed else None

    def _withdraw_if(
        self, name: InstanceName, where: Whereabouts, *, shared: bool
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
        """Remove what is of all other Instances."""
        await self._in_turn(lambda: self._keep(frozenset(known)))

    def _keep(self, known: frozenset[InstanceName]) -> None:
        for gone in self._written.keys() - known:
            del self._written[gone]
        self._withdrawn &= known
        try:
            for name in instance_cdi.left_over(self._folder.names(), known):
                self._folder.remove(name)
            self._links.remove_others(known)
        except OSError as error:
            logger.warning("what is of Instances that are gone is not removed error=%s", error)


def instance_files(cdi_root: Path) -> InstanceCdiFiles:
    """Those where the container runtime looks for them; both folders are empty after a boot."""
    return InstanceCdiFiles(Folder(cdi_root, lasting=False), Links(cdi_root / DRIVER_NAME))
