"""States of devices, from their Instances, taints in ResourceSlices, and DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from driver.api import ATTRIBUTE_INSTANCE, DRIVER_NAME, OFFLINE_TAINT
from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.device_looks import seen_in
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import Offer
from scheduler_plugin.reclaiming.placement.published_slices import PublishedDevice
from scheduler_plugin.viewing.device_rows import OFFLINE, READY, TAINTED

WITHHELD = "Withheld"

LONGEST_VALUE = 64
"""The characters that an attribute has at most; a longer name is cut there."""

AT_ONCE = 200
"""How many devices one step looks at before other tasks run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """The state of one device.

    Attributes:
        state: Ready; Offline if no node sees it; Tainted; or Withheld if no ResourceSlice offers
            it, so that no claim gets it.
        since: When it went offline or was first tainted, in RFC 3339; "" if unknown.
        taints: Each taint as `key:effect` or `key=value:effect`, with its DeviceTaintRule if it is
            in no slice.
        published_on: The nodes that its slices name.
        rules: Names of the DeviceTaintRules that taint all of its slots.
    """

    state: str = READY
    since: str = ""
    taints: tuple[str, ...] = ()
    published_on: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(slots=True)
class DeviceStates:
    """The states of devices, known once `steps` is exhausted.

    Attributes:
        devices: The devices that ResourceSlices offer; None if that is not known.
        rules: The DeviceTaintRules whose taint keeps users away.
    """

    devices: OfferedDevices | None
    rules: TaintRuleIndex = field(default_factory=TaintRuleIndex)
    _instances: set[str] = field(default_factory=set)
    _tainted: dict[str, PublishedDevice] = field(default_factory=dict)
    _is_published: bool = False

    def steps(self) -> Iterator[None]:
        """Look at all devices of our driver; yields after a few devices."""
        pools = list(self.devices.pools((DRIVER_NAME,))) if self.devices is not None else []
        for _, pool in pools:
            self._is_published = True
            for one in pool.slices:
                self._instances |= {instance for (_, instance), _ in one.view.counts}
            for number, found in enumerate(pool.devices.values(), start=1):
                self._note(found)
                if number % AT_ONCE == 0:
                    yield None
            yield None

    def _note(self, found: PublishedDevice) -> None:
        """Note a tainted device; the devices of one Instance have the same taints."""
        if found.taints:
            value = seen_in(found.text).attributes.get(ATTRIBUTE_INSTANCE) or {}
            self._tainted.setdefault(value.get("string") or found.device.name, found)

    def of_instance(self, instance: InstanceView) -> DeviceState:
        """The state of a device of our driver."""
        selected = instance.tainted_by(self.rules)
        rules = [rule for rule, _ in selected]
        whole = [rule for rule, slots in selected if len(slots) == instance.capacity]
        return _tainted_by(rules, whole, self._unruled(instance))

    def _unruled(self, instance: InstanceView) -> DeviceState:
        """The state of a device without the taints of rules."""
        found = self._tainted.get(instance.name)
        published = _state_of(found) if found is not None else DeviceState()
        if published.state == OFFLINE:
            return published
        if not instance.nodes:
            return DeviceState(
                state=OFFLINE,
                since=instance.offline_since,
                taints=published.taints,
                published_on=published.published_on,
            )
        return published if published.taints or not self._withholds(instance) else _WITHHELD

    def _withholds(self, instance: InstanceView) -> bool:
        """Whether no slice offers an Instance; one with slots held counts as offered."""
        is_named = len(instance.name) <= LONGEST_VALUE
        is_offered = instance.name in self._instances or bool(instance.held)
        return self._is_published and is_named and not is_offered

    def of_other(self, device: DeviceId) -> DeviceState:
        """The state of another driver's device, which a slice offered once."""
        rules = self.rules.selecting(*device)
        offer = self.devices.offer(device) if self.devices is not None else None
        if offer is not None:
            return _tainted_by(rules, rules, _state_of(offer.published))
        return _tainted_by(rules, rules, DeviceState() if self.devices is None else _WITHHELD)


_WITHHELD = DeviceState(state=WITHHELD)


def _state_of(found: PublishedDevice) -> DeviceState:
    times = dict(zip(found.taints, found.taint_times, strict=True))
    absent = [time for taint, time in times.items() if taint.key == OFFLINE_TAINT]
    since = min(filter(None, absent or times.values()), default="")
    return DeviceState(
        state=OFFLINE if absent else TAINTED if times else READY,
        since=since,
        taints=tuple(map(str, found.taints)),
        published_on=(found.node,) if found.node else Offer(found, True).nodes.names,
    )


def _tainted_by(
    rules: Sequence[DeviceTaintRule], whole: Sequence[DeviceTaintRule], state: DeviceState
) -> DeviceState:
    """The state with the taints of rules; an offline or withheld device stays so."""
    if not rules:
        return state
    times = (rule.taint.time_added or "" for rule in rules)
    return replace(
        state,
        state=TAINTED if state.state == READY else state.state,
        since=state.since or min(filter(None, times), default=""),
        taints=(*state.taints, *map(str, rules)),
        rules=tuple(rule.name for rule in whole),
    )
