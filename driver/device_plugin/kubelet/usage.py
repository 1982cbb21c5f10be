"""Reconciles slots with the devices that containers use, by the kubelet's listing.

    pod events, a start, every minute ──► reconcile: listing, pods, decision ──► writes, Events

`slots.reconciliation` makes the decision. While something cannot be decided yet, reconciliations
follow with growing delays. A new pod needs no immediate reconciliation: nothing is released then,
and the kubelet and the API server are busy when many pods start together.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from driver.api import NodeName
from driver.device_ids import DeviceKey
from driver.device_plugin.kubelet.allocations import Given, HasSlots
from driver.device_plugin.slots.reconciliation import (
    Evidence,
    Reconciliation,
    SlotConflict,
    reconcile,
)
from driver.instances.slots.node_pods import (
    Listing,
    NodePod,
    NodePods,
    PodName,
    node_pod,
)
from driver.instances.slots.slot_writes import Moment, SlotWrite, is_overtaken
from driver.instances.slots.slots import InstanceSlots, slot_devices
from driver.instances.stored.device_usage import holder_value
from driver.plumbing.apiserver import each
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.plumbing.prometheus import SLOT_RELEASE_SECONDS
from kube.backoff import Backoff
from kube.calls.api import ApiClient, PermanentError
from kube.events.api import Event, ObjectReference
from kube.kinds import PODS
from kube.reconciling.api import After
from kube.shapes.pods import Pod
from kube.stores.api import Added, Change, Deleted, Store, WatchSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        safety_net: How often slots are reconciled without a change.
        soon: Delay after an Allocate, by which the kubelet lists the device.
        alone: Time after the start, by which no earlier process of the driver answers the kubelet.
    """

    safety_net: float = 60.0
    soon: float = 0.2
    alone: float = 60.0


TIMES = Times()

_AGAIN = Backoff(first_seconds=0.2, cap_seconds=10.0)

ListsUsage = Callable[[], Awaitable[Listing | None]]
"""The kubelet's pod-resources listing; None if it does not answer."""


class NodePodObjects:
    """The pods that are bound to this node, on the API server.

    Attributes:
        store: Watches them; the caller runs it.
    """

    def __init__(self, client: ApiClient, node: NodeName, clock: Callable[[], Moment]) -> None:
        self._client = client
        self._clock = clock
        self._selection = PODS.select(field_selector=f"spec.nodeName={node}")
        self.store = Store(client, self._selection, node_pod, settings=WatchSettings(shape=Pod))
        self._read_at: Moment = clock()

    def known(self) -> NodePods:
        """The known pods; any other pod was bound after the last consistent read."""
        return NodePods(self._read_at, tuple(self.store))

    async def read(self) -> NodePods:
        """Read all pods of this moment. Raises ApiError."""
        moment = self._clock()
        found = await self._client.list(self._selection)
        self._read_at = moment
        return NodePods(moment, tuple(map(node_pod, found.items)))


class HasPods(Protocol):
    """See `NodePodObjects`."""

    def known(self) -> NodePods: ...
    async def read(self) -> NodePods: ...


@dataclass(eq=False)
class SlotReconciler:
    """Reconciles this node's slots with the devices that its containers use.

    Attributes:
        usage: Lists what containers use, by the kubelet.
        given: The devices that Allocates gave, and the locks of Instances.
        record: Records an Event without blocking.
    """

    node: NodeName
    slots: HasSlots
    pods: HasPods
    usage: ListsUsage
    given: Given
    record: Callable[[Event], None]

    def __post_init__(self) -> None:
        self._queue = whole_reconciler("reconciling slots", self._reconcile)
        self._waits = 0
        # When the first pod ended whose slots may not be released yet.
        self._ended_at: Moment | None = None
        self._alone_at = self.given.clock() + TIMES.alone
        self._reported: frozenset[SlotConflict] = frozenset()

    async def run(self) -> NoReturn:
        """Reconcile until cancelled."""
        await self._queue.run()

    def pod_changed(self, change: Change[NodePod]) -> None:
        """Reconcile after a pod of this node was added, changed or deleted."""
        if not _pod_of(change).requests:
            return
        if isinstance(change, Deleted) or change.new.finished:
            self._ended_at = self._ended_at or self.given.clock()
        came = isinstance(change, Added) and not change.new.finished
        self._wake(TIMES.soon if came else 0)

    def instance_changed(self, change: Change[InstanceSlots]) -> None:
        """Reconcile after slots of this node were written, by an Allocate or by hand."""
        if isinstance(change, Deleted):
            return
        if isinstance(change, Added) or self._is_in_conflict(change.new):
            self._wake(0)
        elif change.old.held_by(self.node) != change.new.held_by(self.node):
            self._wake(TIMES.soon)

    def _is_in_conflict(self, slots: InstanceSlots) -> bool:
        """Whether a container of this node uses the device without a slot, and may get one now."""
        return any(conflict.instance == slots.name for conflict in self._reported)

    def _wake(self, seconds: float) -> None:
        self._waits = 0
        self._queue.add_after(ALL, seconds)

    async def _reconcile(self) -> After:
        self.given.forget_old()
        ended_at = self._ended_at
        found = await self._reconciled()
        await each(found.writes, self._carry_out)
        for waiting in found.waiting:
            logger.debug("waiting slot=%s why=%s", waiting.subject, waiting.reason)
        self._waits = self._waits + 1 if found.waiting else 0
        if not found.waiting and self._ended_at == ended_at:
            self._ended_at = None
        # No jitter: users wait for the first retries, and they do not load a server.
        return After(_AGAIN.delay(self._waits, lambda: 1.0) if self._waits else TIMES.safety_net)

    async def _reconciled(self) -> Reconciliation:
        listing = await self.usage()
        pods = self.pods.known()
        if listing is not None:
            held = self._held()
            if self.given.clock() >= self._alone_at:
                self.given.note_users(listing, held)
            if held - {used.device for used in listing.devices}:
                pods = await self.pods.read()
        evidence = Evidence(
            listing=listing, pods=pods, allocated=self.given.moments, users=self.given.users
        )
        found = reconcile(self.node, self.slots.views().values(), evidence)
        if listing is not None:
            self._report(found.conflicts)
        return found

    def _held(self) -> set[DeviceKey | None]:
        """The devices of this node's slots; None for a slot without a valid device."""
        views = self.slots.views().values()
        return {device for view in views for device in slot_devices(view, self.node).values()}

    async def _carry_out(self, write: SlotWrite) -> None:
        if not await self._is_carried_out(write):
            self._queue.add(ALL)

    async def _is_carried_out(self, write: SlotWrite) -> bool:
        """Carry out a write; returns False if it must be decided again."""
        async with self.given.locks.of((write.instance,)):
            if is_overtaken(write, self.given.moments):
                return False
            try:
                is_written = await self.slots.write(write)
            except PermanentError as error:
                logger.warning("slots not written instance=%s error=%s", write.instance, error)
                return True
        if is_written:
            logger.info("slots follow use instance=%s slots=%s", write.instance, _said(write))
            if self._ended_at is not None and None in write.changes.values():
                SLOT_RELEASE_SECONDS.observe(self.given.clock() - self._ended_at)
        return is_written

    def _report(self, conflicts: Sequence[SlotConflict]) -> None:
        """Record each conflict once for as long as it lasts."""
        for conflict in conflicts:
            if conflict not in self._reported:
                logger.warning("slot conflict pod=%s: %s", conflict.pod, conflict.sentence)
                regarding = pod_reference(conflict.pod, self.pods.known())
                note = conflict.sentence
                self.record(Event.warning(regarding, "SlotConflict", "Reconcile", note))
        self._reported = frozenset(conflicts)


def pod_reference(pod: PodName, known: NodePods) -> ObjectReference:
    """The reference of a pod of this node for an Event, with its UID if that is known."""
    uids = (one.uid for one in known.pods if one.name == pod)
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        name=pod.name,
        namespace=pod.namespace,
        uid=next(uids, ""),
    )


def _said(write: SlotWrite) -> str:
    return ", ".join(
        f"{index}: {holder_value(holder) or 'free'}" for index, holder in write.changes.items()
    )


def _pod_of(change: Change[NodePod]) -> NodePod:
    return change.old if isinstance(change, Deleted) else change.new
