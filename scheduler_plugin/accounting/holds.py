"""What is held for a pod by name: what was taken from others, until the pod has it.

A hold is an assumption that no answer to kube-scheduler drops. While the pod itself is assumed to
be bound the hold rests, so that nothing counts twice; afterwards, if the pod still waits, it counts
again.

Where a device is held, no ceiling keeps others from it: they are kept off where what is free beside
it is not enough for them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field

from scheduler_plugin.accounting.overlays import Overlay
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.held_texts import Held, HeldDevices, HeldResources
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True)
class Hold:
    """What a pod will be charged, and to whom.

    Attributes:
        name: The pod, for a sentence.
        queue: The queue that will be charged.
        non_preemptible: The part of the charges that counts against the quota, too.
        is_device: Whether devices are held for it, and not only room below limits.
        devices: Which ones, each with how many slots.
        resources: What the node's device plugins have for it.
        awaits: The claims whose users have to leave them first.
        node: Where the pod would be; "" where its devices are those of several nodes.
        awaits_pods: Pods that have to end first.
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

    @property
    def is_of_any(self) -> bool:
        """Whether nobody knows which device it is: an earlier version did not write it."""
        return self.is_device and not self.devices and not self.resources

    @property
    def held(self) -> Held:
        """What of it the pod's condition says."""
        return Held(self.devices, self.resources, self.node)


@dataclass(slots=True)
class _Tables:
    """What is held; `resting` are those whose pod is assumed to be bound."""

    holds: MutableMapping[PodUid, Hold] = field(default_factory=dict)
    resting: MutableMapping[PodUid, None] = field(default_factory=dict)
    of_devices: MutableMapping[PodUid, Hold] = field(default_factory=dict)
    turns: int = 0

    def trial(self) -> _Tables:
        return _Tables(
            Overlay(self.holds), Overlay(self.resting), Overlay(self.of_devices), self.turns
        )


class Holds:
    """All holds, and what those that do not rest add to the sums of what is assumed."""

    def __init__(
        self, usage: Totals, non_preemptible: Totals, tables: _Tables | None = None
    ) -> None:
        """The sums are those of the assumptions; nothing is held unless `tables` say so."""
        self._usage = usage
        self._non_preemptible = non_preemptible
        self._tables = tables or _Tables()

    def trial(self, usage: Totals, non_preemptible: Totals) -> Holds:
        """These holds, and changes that are the result's alone; the sums are the trial's."""
        return Holds(usage, non_preemptible, self._tables.trial())

    @property
    def turns(self) -> int:
        """How often something began or ceased to be held."""
        return self._tables.turns

    def __contains__(self, pod: PodUid) -> bool:
        return pod in self._tables.holds

    def get(self, pod: PodUid) -> Hold | None:
        """What is held for a pod; None for nothing."""
        return self._tables.holds.get(pod)

    def __iter__(self) -> Iterator[Hold]:
        """The holds, the earliest first."""
        return iter(tuple(self._tables.holds.values()))

    def of_devices(self) -> tuple[Hold, ...]:
        """Those of devices, the earliest first."""
        return tuple(self._tables.of_devices.values())

    def put(self, hold: Hold, *, rests: bool) -> None:
        """Hold room for a pod; `rests` says whether it is assumed to be bound just now."""
        self.end(hold.pod)
        self._tables.holds[hold.pod] = hold
        self._tables.turns += 1
        if hold.is_device:
            self._tables.of_devices[hold.pod] = hold
        self._tables.resting[hold.pod] = None
        if not rests:
            self.resume(hold.pod)

    def end(self, pod: PodUid) -> Hold | None:
        """Give up what is held for a pod; None where there was nothing."""
        self.rest(pod)
        self._tables.resting.pop(pod, None)
        self._tables.of_devices.pop(pod, None)
        hold = self._tables.holds.pop(pod, None)
        if hold is not None:
            self._tables.turns += 1
        return hold

    def rest(self, pod: PodUid) -> None:
        """The pod is assumed to be bound, which counts the same."""
        hold = self._tables.holds.get(pod)
        if hold is not None and pod not in self._tables.resting:
            self._tables.resting[pod] = None
            self._add(hold, -1)

    def resume(self, pod: PodUid) -> None:
        """It is not any more."""
        if pod in self._tables.resting:
            del self._tables.resting[pod]
            self._add(self._tables.holds[pod], 1)

    def counted_for(self, pod: PodUid) -> Hold | None:
        """What counts for a pod now; None for nothing."""
        return None if pod in self._tables.resting else self._tables.holds.get(pod)

    def _add(self, hold: Hold, sign: int) -> None:
        self._usage.add(hold.queue, hold.usage, sign)
        self._non_preemptible.add(hold.queue, hold.non_preemptible, sign)
