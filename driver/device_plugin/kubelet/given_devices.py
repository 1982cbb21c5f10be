"""Updates the files of devices that the device plugin gave to containers of this node.

    inventory, Instances ──keep──► CDI files and links of Instances with held slots
                             └──► Events on the pods that the kubelet lists for them

The kubelet keeps an answer for the life of a pod, see `instance_cdi`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn

from driver.api import InstanceName, NodeName
from driver.device_plugin.containers.disk_cdi import InstanceCdiFiles
from driver.device_plugin.containers.given_events import (
    given_event,
    named,
    pods_with,
)
from driver.device_plugin.containers.instance_cdi import GivenChange
from driver.device_plugin.kubelet.usage import HasPods, ListsUsage, pod_reference
from driver.instances.slots.slots import InstanceSlots
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.preparing.grants.device_events import DeviceEvent, path_taken
from driver.preparing.grants.device_locators import DeviceLocator
from kube.events.api import Event
from kube.reconciling.api import After, Done, Result


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        look: How often the files are checked without a change: during an update of the driver
            another process writes them, too, which may know less.
        retry: Delay before the kubelet is asked again that did not answer.
    """

    look: float = 10.0
    retry: float = 1.0


TIMES = Times()


@dataclass(eq=False)
class GivenDevices:
    """Keeps files up to date, and records Events on pods, while `run` runs.

    Attributes:
        where: Returns the current locations of this node's devices; None before they are known.
        views: Returns the current Instances.
        usage: Lists what containers use, by the kubelet.
        record: Records an Event without blocking.
        files_queue: Its key is added when Instances or devices may have changed.
        unreported: Events that are not recorded yet.
    """

    node: NodeName
    files: InstanceCdiFiles
    where: Callable[[], DeviceLocator | None]
    views: Callable[[], Mapping[InstanceName, InstanceSlots]]
    usage: ListsUsage
    pods: HasPods
    record: Callable[[Event], None]

    def __post_init__(self) -> None:
        self.files_queue = whole_reconciler("keeping what was given", self._keep_now)
        self._events_queue = whole_reconciler("telling pods of given devices", self._record_events)
        self.unreported: dict[tuple[InstanceName, DeviceEvent], None] = {}
        self._previous_paths: dict[InstanceName, dict[str, None]] = {}
        self._taken: frozenset[tuple[InstanceName, str, InstanceName]] = frozenset()
        self._kept: (
            tuple[Mapping[InstanceName, bool], frozenset[InstanceName], DeviceLocator] | None
        )
        self._kept = None
        self._due = 0.0

    async def run(self) -> NoReturn:
        """Update files and record Events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.files_queue.run())
            await self._events_queue.run()

    async def _keep_now(self) -> After:
        if (where := self.where()) is not None:
            await self.keep(where)
        return After(TIMES.look)

    async def keep(self, where: DeviceLocator) -> None:
        """Update the files to the current locations of the devices.

        Raises:
            OSError: A file cannot be written. Call again.
        """
        views = self.views()
        held = {n: v.shared for n, v in views.items() if v.holders and v.held_by(self.node)}
        known = frozenset(views)
        now = asyncio.get_running_loop().time()
        if self._kept == (held, known, where) and now < self._due:
            return
        changes = await self.files.follow(held, where)
        for change in changes:
            self._note(change, where)
        await self.files.keep(known)
        self._note_taken(held, where, {change.instance for change in changes})
        self._kept, self._due = (held, known, where), now + TIMES.look

    def _note(self, change: GivenChange, where: DeviceLocator) -> None:
        now = change.after.paths if change.after else ()
        previous = self._previous_paths.setdefault(change.instance, {})
        previous.update(dict.fromkeys(change.before.paths if change.before else ()))
        for path in now:
            previous.pop(path, None)
        event = given_event(change, tuple(previous), where)
        if event is not None:
            self.unreported[change.instance, event] = None
            self._events_queue.add(ALL)

    def _note_taken(
        self,
        held: Mapping[InstanceName, bool],
        where: DeviceLocator,
        reported: Collection[InstanceName],
    ) -> None:
        """Report paths that other devices have taken, once, and not together with other changes."""
        self._previous_paths = {
            name: previous for name, previous in self._previous_paths.items() if name in held
        }
        taken = frozenset(
            (name, path, owner)
            for name, previous in self._previous_paths.items()
            for path in previous
            if (owner := where.owner(path))
        )
        for name, path, owner in taken - self._taken:
            if name not in reported:
                self.unreported[name, path_taken(f"the {named(name)}", path, owner)] = None
                self._events_queue.add(ALL)
        self._taken = taken

    async def _record_events(self) -> Result:
        if not self.unreported:
            return Done()
        listing = await self.usage()
        if listing is None:
            return After(TIMES.retry)
        events, self.unreported = tuple(self.unreported), {}
        for instance, said in events:
            record = Event.warning if said.is_warning else Event.normal
            for pod in pods_with(instance, self.views(), listing, self.node):
                regarding = pod_reference(pod, self.pods.known())
                self.record(record(regarding, said.reason, "Renew", said.sentence))
        return Done()
