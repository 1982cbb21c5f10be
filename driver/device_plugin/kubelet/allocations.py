"""Answers the kubelet's calls to the device plugins, by the procedure in `slots.allocation`.

All slots of an Allocate are written before the answer. A call is completed even if the kubelet has
given it up: slot reconciliation then releases its slots.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from driver.api import InstanceName
from driver.device_ids import DeviceKey
from driver.device_plugin.containers.responses import ContainerResponse, Files, Refused
from driver.device_plugin.slots.allocation import (
    Allocation,
    Offer,
    OfInstance,
    Plugin,
    concerned,
    plan_allocate,
)
from driver.device_plugin.slots.preferences import preferred_devices
from driver.instances.instances import Instance
from driver.instances.slots.node_pods import Listing, PodName
from driver.instances.slots.slot_writes import Moment, SlotWrite, undo
from driver.instances.slots.slots import InstanceSlots
from driver.plumbing.disk import real_path
from driver.plumbing.prometheus import ALLOCATION_SECONDS, ALLOCATIONS
from driver.preparing.grants.renewals import Resolve, with_real_paths
from kube.calls.api import ApiError
from kube.key_locks import KeyLocks

logger = logging.getLogger(__name__)

ATTEMPTS = 8
"""How often an Allocate is planned again after a conflict."""

FORGET_SECONDS = 60.0
"""How long Allocates are remembered: longer than any evidence that slot reconciliation uses."""


class HasSlots(Protocol):
    """Instances on the API server, see `apiserver_slots.SlotObjects`. All calls raise ApiError."""

    def views(self) -> Mapping[InstanceName, InstanceSlots]: ...
    async def read(self, namespace: str, name: InstanceName) -> None: ...
    async def write(self, write: SlotWrite) -> bool: ...


class Given:
    """The devices that this process gave to the kubelet.

    Attributes:
        moments: When each device was given last.
        users: The pod for which the kubelet last listed each device, if it was not given since.
        locks: Locks by Instance, which each writer of slots holds.
        clock: Returns seconds and never steps back.
    """

    def __init__(self, clock: Callable[[], Moment]) -> None:
        self.moments: dict[DeviceKey, Moment] = {}
        self.users: dict[DeviceKey, PodName] = {}
        self.locks: KeyLocks[InstanceName] = KeyLocks()
        self.clock = clock

    def note(self, devices: Iterable[DeviceKey]) -> None:
        """Note that these devices are being given, or have just been given."""
        now = self.clock()
        for device in devices:
            self.moments[device] = now
            self.users.pop(device, None)

    def note_users(self, listing: Listing, held: Collection[DeviceKey | None]) -> None:
        """Remember the pods of listed devices, and the last pods of devices that are held."""
        known = {device: pod for device, pod in self.users.items() if device in held}
        for used in listing.devices:
            if self.moments.get(used.device, listing.asked) <= listing.asked:
                known[used.device] = used.pod
        self.users = known

    def forget_old(self) -> None:
        """Forget devices that were given more than `FORGET_SECONDS` ago."""
        oldest = self.clock() - FORGET_SECONDS
        for device in [d for d, moment in self.moments.items() if moment < oldest]:
            del self.moments[device]


@dataclass(frozen=True, slots=True)
class _Call:
    """One Allocate, and the files for its answer."""

    plugin: Plugin
    containers: Sequence[Sequence[str]]
    names: Sequence[InstanceName]
    files: Mapping[InstanceName, Files]


class KubeletAllocations:
    """Answers the kubelet (`device_plugins.AnswersKubelet`).

    Args:
        slots: The Instances.
        offer: Returns the current offer, without files.
        write_files: Writes the files that answers name, see `disk_cdi.InstanceCdiFiles`.
        given: The given devices, shared with slot reconciliation.
        on_refused: Called with the plugin of every refused call, since its list is stale. The
            kubelet gets the refusal afterwards.

    Attributes:
        resolve: Resolves the links of a path of the host; set it before the kubelet calls.
    """

    def __init__(
        self,
        slots: HasSlots,
        offer: Callable[[], Offer],
        write_files: Callable[[Iterable[Instance]], Awaitable[Mapping[InstanceName, Files]]],
        *,
        given: Given,
        on_refused: Callable[[Plugin], Awaitable[None]],
    ) -> None:
        self.resolve: Resolve = real_path
        self._slots = slots
        self._write_files = write_files
        self._offer = offer
        self._given = given
        self._on_refused = on_refused

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """The devices that are best allocated together."""
        return preferred_devices(available, must_include, size, self._of(plugin))

    def _of(self, plugin: Plugin) -> Mapping[InstanceName, InstanceSlots]:
        views = self._slots.views()
        if isinstance(plugin, OfInstance):
            return {plugin.name: views[plugin.name]} if plugin.name in views else {}
        return {name: view for name, view in views.items() if view.configuration == plugin.name}

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        """Allocate devices to the containers of one pod, all or none."""
        result = "error"
        try:
            with ALLOCATION_SECONDS.time():
                answer = await self._answer(plugin, containers)
            result = "refused" if isinstance(answer, Refused) else "granted"
        finally:
            ALLOCATIONS.labels(result).inc()
        return answer

    async def _answer(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        devices = {DeviceKey(str(plugin), device) for ids in containers for device in ids}
        names = concerned(plugin, containers, self._offer())
        async with self._given.locks.of(names):
            self._given.note(devices)
            known = self._known(names)
            files = await self._write_files(known)
            unwritten = [i.name for i in known if i.name not in files]
            if unwritten:
                answer: Allocation | Refused = Refused(_unwritten(plugin, unwritten))
            else:
                answer = await self._allocate(_Call(plugin, containers, names, files))
            self._given.note(devices)
        if isinstance(answer, Refused):
            logger.warning("refused resource=%s why=%s", plugin, answer.sentence)
            await self._on_refused(plugin)
            return answer
        logger.info("allocated resource=%s devices=%s", plugin, sorted(d.id for d in devices))
        return answer.responses

    def _known(self, names: Iterable[InstanceName]) -> list[Instance]:
        """The Instances of these names as discovery reports them now, with resolved paths."""
        instances = self._offer().instances
        return [with_real_paths(instances[n], self.resolve) for n in names if n in instances]

    async def _allocate(self, call: _Call) -> Allocation | Refused:
        taken: list[SlotWrite] = []
        try:
            answer = await self._granted(call, taken)
        except ApiError as error:
            answer = Refused(f"{call.plugin}: slots cannot be taken now: {error}")
        if isinstance(answer, Refused):
            await self._give_back(taken)
        return answer

    async def _granted(self, call: _Call, taken: list[SlotWrite]) -> Allocation | Refused:
        read: set[InstanceName] = set()
        for _ in range(ATTEMPTS):
            known = {instance.name: instance for instance in self._known(call.names)}
            offer = replace(self._offer(), instances=known, files=call.files)
            plan = plan_allocate(call.plugin, call.containers, offer)
            if isinstance(plan, Refused):
                return plan
            written = await self._write_all(plan, taken)
            unread = set(plan.unwritten) - {write.instance for write in taken} - read
            if written and not unread:
                return plan
            await self._read(unread)
            read |= unread
        return Refused(
            f"{call.plugin}: slots cannot be taken: other nodes changed them {ATTEMPTS} times"
            " meanwhile"
        )

    async def _write_all(self, plan: Allocation, taken: list[SlotWrite]) -> bool:
        for write in plan.writes:
            if not await self._slots.write(write):
                return False
            taken.append(write)
        return True

    async def _read(self, names: Collection[InstanceName]) -> None:
        views = self._slots.views()
        known = [views[name] for name in sorted(names) if name in views]
        await asyncio.gather(*(self._slots.read(view.namespace, view.name) for view in known))

    async def _give_back(self, taken: Sequence[SlotWrite]) -> None:
        """Release the slots that were taken; if that fails, slot reconciliation does it later."""
        for write in taken:
            try:
                await self._undo(write)
            except ApiError as error:
                logger.warning("slots not released yet instance=%s error=%s", write.instance, error)

    async def _undo(self, write: SlotWrite) -> None:
        for _ in range(ATTEMPTS):
            view = self._slots.views().get(write.instance)
            release = undo(write, view) if view is not None else None
            if release is None or await self._slots.write(release):
                return


def _unwritten(plugin: Plugin, names: Sequence[InstanceName]) -> str:
    return f"{plugin}: links to the device of Instance {names[0]} cannot be written on this node"
