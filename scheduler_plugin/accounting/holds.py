"""Holds: what is held for a preemptor, from the eviction of its targets until it is bound.

A hold is an assumption that no answer to kube-scheduler removes. While the pod itself is assumed to
be bound, its hold is suspended, so that nothing counts twice; if the pod is pending again
afterwards, the hold counts again.

Held devices are not protected by ceilings: other pods are refused nodes where the free devices
beside the held ones are not enough for them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field

from scheduler_plugin.accounting.overlays import Overlay
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.held_texts import Held, HeldDevices, HeldParts, HeldResources
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True)
class Hold:
    """What is held for one pod.

    Attributes:
        name: The pod, as sentences name it.
        queue: The queue that will be charged.
        usage: The charges.
        non_preemptible: The part of the charges that counts against the quota, too.
        is_device: Whether devices are held, and not only room below limits.
        devices: The devices, each with a number of slots.
        resources: The slots of device plugins on the node.
        awaits: The claims whose users must end first.
        node: The node; "" if the devices are usable from several nodes.
        awaits_pods: The pods that must end first.
        parts: The parts of the devices that several claims divide; such a device without one is
            held as a whole.
    """

    pod: PodUid
    name: str
    queue: QueueName
    usage: Charges
    non_preemptible: Charges
    is_device: bool = False
    devices: HeldDevices = ()
    resources: HeldResources = ()
    awaits: tuple[ClaimUid, ...] = ()
    node: str = ""
    awaits_pods: tuple[PodUid, ...] = ()
    parts: HeldParts = ()

    @property
    def is_of_any(self) -> bool:
        """Whether the held device is unknown: an earlier version did not write it."""
        return self.is_device and not self.devices and not self.resources

    @property
    def held(self) -> Held:
        """The part of the hold that the pod's condition says."""
        return Held(self.devices, self.resources, self.node)


@dataclass(slots=True)
class _Tables:
    """The holds; those of the pods in `suspended` do not count."""

    holds: MutableMapping[PodUid, Hold] = field(default_factory=dict)
    suspended: MutableMapping[PodUid, None] = field(default_factory=dict)
    of_devices: MutableMapping[PodUid, Hold] = field(default_factory=dict)
    revision: int = 0

    def trial(self) -> _Tables:
        return _Tables(
            Overlay(self.holds), Overlay(self.suspended), Overlay(self.of_devices), self.revision
        )


class Holds:
    """All holds. Those that are not suspended are added to the sums of the assumptions."""

    def __init__(
        self, usage: Totals, non_preemptible: Totals, tables: _Tables | None = None
    ) -> None:
        """The sums are those of the assumptions; `tables` are the holds of a trial."""
        self._usage = usage
        self._non_preemptible = non_preemptible
        self._tables = tables or _Tables()

    def trial(self, usage: Totals, non_preemptible: Totals) -> Holds:
        """An overlay of these holds; the sums are those of the trial."""
        return Holds(usage, non_preemptible, self._tables.trial())

    @property
    def revision(self) -> int:
        """How often a hold began or ended."""
        return self._tables.revision

    def __contains__(self, pod: PodUid) -> bool:
        return pod in self._tables.holds

    def get(self, pod: PodUid) -> Hold | None:
        """The hold for a pod; None if there is none."""
        return self._tables.holds.get(pod)

    def __iter__(self) -> Iterator[Hold]:
        """The holds, the earliest first."""
        return iter(tuple(self._tables.holds.values()))

    def of_devices(self) -> tuple[Hold, ...]:
        """The holds of devices, the earliest first."""
        return tuple(self._tables.of_devices.values())

    def put(self, hold: Hold, *, is_suspended: bool) -> None:
        """Add a hold; `is_suspended` says whether its pod is assumed to be bound."""
        self.end(hold.pod)
        self._tables.holds[hold.pod] = hold
        self._tables.revision += 1
        if hold.is_device:
            self._tables.of_devices[hold.pod] = hold
        self._tables.suspended[hold.pod] = None
        if not is_suspended:
            self.resume(hold.pod)

    def end(self, pod: PodUid) -> Hold | None:
        """End the hold for a pod, and return it; None if there was none."""
        self.suspend(pod)
        self._tables.suspended.pop(pod, None)
        self._tables.of_devices.pop(pod, None)
        hold = self._tables.holds.pop(pod, None)
        if hold is not None:
            self._tables.revision += 1
        return hold

    def suspend(self, pod: PodUid) -> None:
        """Suspend the hold: its pod is assumed to be bound, which counts the same."""
        hold = self._tables.holds.get(pod)
        if hold is not None and pod not in self._tables.suspended:
            self._tables.suspended[pod] = None
            self._add(hold, -1)

    def resume(self, pod: PodUid) -> None:
        """Count the hold again: its pod is not assumed to be bound any more."""
        if pod in self._tables.suspended:
            del self._tables.suspended[pod]
            self._add(self._tables.holds[pod], 1)

    def counted_for(self, pod: PodUid) -> Hold | None:
        """The hold that counts for a pod now; None if there is none, or it is suspended."""
        return None if pod in self._tables.suspended else self._tables.holds.get(pod)

    def _add(self, hold: Hold, sign: int) -> None:
        self._usage.add(hold.queue, hold.usage, sign)
        self._non_preemptible.add(hold.queue, hold.non_preemptible, sign)
