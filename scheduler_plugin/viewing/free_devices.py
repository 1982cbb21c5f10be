"""Whether devices for a pod are free: how many exist, are absent or in use, and by which claims.

    pod ──► what it needs of each class ──► devices that may be of the class, less those in use

It is a necessary condition: no CEL is evaluated, and the nodes of other drivers' devices are not
known. A device that claims divide has room for any number of requests: how much each one asks for
is not counted. Partitions count as if all of them could be in use together: the counters that they
share are not looked at. There may be fewer free devices than this module finds, never more. So a
shortage is certain; without one, kube-scheduler decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from driver.api import DRIVER_NAME
from kube.words import some_of
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.devices.catalog import MOST_OF_A_NAME
from scheduler_plugin.objects.devices.device_counts import Selection, selection_of
from scheduler_plugin.objects.devices.resource_names import LEGACY_PREFIX
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.viewing.device_needs import Choice, Need, Wanted, device_needs
from scheduler_plugin.viewing.instance_rows import InstanceRow, instance_rows

MANY = 1_000_000_000
"""As many requests as may come: how often a device is divided depends on the requests."""


class Counts(NamedTuple):
    """The devices that may be of one kind.

    Attributes:
        there: How many exist.
        absent: How many of them no node sees.
        free: How many requests fit on one node, as far as the nodes of devices are known.
        free_in_all: How many requests fit on all nodes together.
        in_use: How many have no room for a request, and are not absent.
        tainted: How many of the others a DeviceTaintRule taints, so that no request gets them.
        rules: Names of those rules.
    """

    there: int = 0
    absent: int = 0
    free: int = 0
    free_in_all: int = 0
    in_use: int = 0
    tainted: int = 0
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim or node that uses devices of a kind.

    Attributes:
        what: A ResourceClaim with its users, or the node whose pods hold slots.
        namespace: The claim's namespace; "" for a node.
        queue: The queue that is charged for the claim; "" for none, and for a node.
    """

    what: str
    namespace: str = ""
    queue: QueueName = NO_QUEUE


@dataclass(frozen=True, slots=True)
class Shortage:
    """Too few devices are free for a pod.

    Attributes:
        sentence: What is needed, how many exist and how many are in use; it names no claim.
        wanted: The kind of device.
        missing: How many more must be free; 0 if no device of the kind exists.
    """

    sentence: str
    wanted: Wanted
    missing: int


class FreeDevices:
    """The devices at one moment; the counts of each kind are cached."""

    def __init__(self, world: WorldView, rows: Mapping[str, Sequence[InstanceRow]]) -> None:
        """`rows` are the devices of our driver by Configuration; see `free_devices`."""
        self._world = world
        self._rows = rows
        self._counts: dict[Wanted, Counts | None] = {}
        self._taken: Counter[Wanted] = Counter()
        self._counted: set[ClaimUid] = set()

    def shortage(self, pod: PodView) -> Shortage | None:
        """The first shortage for a waiting pod; None if enough devices may be free."""
        for choice in device_needs(pod, self._world.facts, self._counted):
            if (found := self._short(choice)) is not None:
                return found
        return None

    def take(self, pods: Sequence[PodView]) -> Shortage | None:
        """Count the needs of all pods as taken; returns the shortage and takes none if it is short.

        A need with alternatives is not counted, since the chosen alternative is not known.
        """
        before = self._taken.copy(), self._counted.copy()
        for pod in pods:
            if (found := self.shortage(pod)) is not None:
                self._taken, self._counted = before
                return found
            self._take(pod)
        return None

    def _take(self, pod: PodView) -> None:
        facts = self._world.facts
        for choice in device_needs(pod, facts, self._counted):
            if len(choice) == 1:
                self._taken[choice[0].wanted] += choice[0].devices
        self._counted |= {claim.uid for claim in facts.claims_of(pod)}

    def holders(self, wanted: Wanted) -> Iterator[Holder]:
        """The users of devices that may be of a kind: the claims by name, then the nodes."""
        world, selection = self._world, self._selection(wanted)
        named: dict[str, None] = {}
        nodes: dict[str, None] = {}
        for row in self._selected(selection):
            named |= dict.fromkeys(claim for claim, _ in row.claims)
            nodes |= dict.fromkeys(node for node, _ in row.held)
        for claim in self._other_claims(selection):
            named["/".join(claim.key)] = None
        for name in sorted(named):
            claim_found = world.facts.claim_named(*name.split("/", 1))
            if claim_found is not None:
                yield _holder(claim_found, world)
        for node in sorted(nodes):
            yield Holder(f"pods on node {node or '(unknown)'}, through the device plugin")

    def _short(self, choice: Choice) -> Shortage | None:
        """The first shortage, if every alternative is short."""
        found = [self._short_of(need) for need in choice]
        return found[0] if found and all(found) else None

    def _short_of(self, need: Need) -> Shortage | None:
        counts = self.counts(need.wanted)
        if counts is None:
            return Shortage(f"{need.wanted} does not exist.", need.wanted, 0)
        if not counts.there:
            return Shortage(f"There is no device of {need.wanted}.", need.wanted, 0)
        free = max(0, min(counts.free, counts.free_in_all - self._taken[need.wanted]))
        if free >= need.devices:
            return None
        missing = need.devices - free
        return Shortage(_sentence(need, counts, free), need.wanted, missing)

    def counts(self, wanted: Wanted) -> Counts | None:
        """How many devices exist and how many are free; None if the class does not exist."""
        if wanted not in self._counts:
            self._counts[wanted] = self._count(wanted)
        return self._counts[wanted]

    def _count(self, wanted: Wanted) -> Counts | None:
        selection = self._selection(wanted)
        if selection is None:
            return None
        if selection[:1] == (DRIVER_NAME,):
            return _counts(list(self._selected(selection)), wanted.slots)
        there = self._world.facts.catalog.published(wanted.device_class)
        in_use = min(there, self._used_whole(selection))
        free = MANY if there > in_use and self._may_divide(selection) else there - in_use
        return Counts(there=there, free=free, free_in_all=free, in_use=in_use)

    def _may_divide(self, selection: Selection) -> bool:
        """Whether several claims may have parts of one of other drivers' devices."""
        table = self._world.facts.catalog.device_table
        drivers = selection[:1] or table.drivers()
        return any(kind.is_divided for driver in drivers for kind in table.kinds(driver))

    def _selection(self, wanted: Wanted) -> Selection | None:
        """The selection of a kind's devices; None if the class does not exist."""
        catalog = self._world.facts.catalog
        if wanted.resource:
            name = wanted.resource.removeprefix(LEGACY_PREFIX)
            instance = catalog.instance_named(name)
            return (DRIVER_NAME, instance.configuration, name) if instance else (DRIVER_NAME, name)
        view = catalog.class_named(wanted.device_class)
        if view is None:
            return None
        if max(len(view.configuration), len(view.selects)) >= MOST_OF_A_NAME:
            return (DRIVER_NAME,)  # Label and attribute have only the start of the name.
        is_user_class = view.selects and not view.configuration
        return (DRIVER_NAME, view.selects) if is_user_class else selection_of(view) or ()

    def _selected(self, selection: Selection | None) -> Iterator[InstanceRow]:
        """The devices of our driver in a selection."""
        if selection is None or selection[:1] not in ((), (DRIVER_NAME,)):
            return
        configurations = selection[1:2] or tuple(self._rows)
        for configuration in configurations:
            for row in self._rows.get(configuration, ()):
                if row.name in (selection[2:] or (row.name,)):
                    yield row

    def _used_whole(self, selection: Selection) -> int:
        """How many of other drivers' devices a claim has alone, in pools that exist."""
        facts = self._world.facts
        of_driver = (d for d in facts.devices_in_use() if d.driver in (selection or (d.driver,)))
        return sum(map(self._has_one_owner, of_driver))

    def _has_one_owner(self, device: DeviceId) -> bool:
        """Whether another driver's device is in use, and no other claim can have a part of it."""
        claims = self._world.facts.claims_with(device)
        results = (result for claim in claims for result in claim.results or ())
        mine = (r for r in results if r.device_id == device and not r.admin_access)
        is_shown = device.driver != DRIVER_NAME and self._world.facts.catalog.has_pool(device)
        return is_shown and any(not result.is_part for result in mine)

    def _other_claims(self, selection: Selection | None) -> Iterator[ClaimView]:
        """The claims that have other drivers' devices of a selection."""
        if selection is None or selection[:1] == (DRIVER_NAME,):
            return
        for device in self._world.facts.devices_in_use():
            if device.driver in (selection or (device.driver,)):
                yield from self._world.facts.claims_with(device)


def free_devices(world: WorldView) -> Iterator[FreeDevices | None]:
    """The current devices; yields None after each step, and the devices at the end."""
    rows: dict[str, list[InstanceRow]] = {}
    for row in instance_rows(world):
        if row is not None and row.driver == DRIVER_NAME and row.configuration:
            rows.setdefault(row.configuration, []).append(row)
        yield None
    yield FreeDevices(world, rows)


def free_now(world: WorldView) -> FreeDevices:
    """The current devices, without steps."""
    return next(found for found in free_devices(world) if found is not None)


def _counts(rows: Sequence[InstanceRow], slots: int) -> Counts:
    """The counts; a claim gets devices that its node alone sees, and devices of several nodes."""
    on: Counter[str] = Counter()
    rules: dict[str, None] = {}
    anywhere = absent = in_use = tainted = 0
    for row in rows:
        room = max(0, (row.slots or 0) - row.used) // slots
        if not row.nodes:
            absent += 1
        elif not room:
            in_use += 1
        elif row.rules:
            tainted += 1
            rules |= dict.fromkeys(row.rules)
        elif len(row.nodes) == 1:
            on[row.nodes[0]] += room
        else:
            anywhere += room
    free = anywhere + max(on.values(), default=0)
    in_all = anywhere + sum(on.values())
    return Counts(len(rows), absent, free, in_all, in_use, tainted, tuple(rules))


def _sentence(need: Need, counts: Counts, free: int) -> str:
    return f"{_shortfall(need, free)}: {_of_all(counts)}."


def _shortfall(need: Need, free: int) -> str:
    wanted, slots = need.wanted, need.wanted.slots
    if need.devices == 1:
        return f"No device of {wanted} {f'has {slots} free slots' if slots > 1 else 'is free'}"
    each = f" with {slots} free slots each" if slots > 1 else ""
    are = "is" if free == 1 else "are"
    most = f"at most {free} {are} free"
    return f"{need.devices} devices of {wanted}{each} are needed on one node, and {most}"


def _of_all(counts: Counts) -> str:
    """`3 exist, 2 are in use, 1 is absent`."""
    states = ((counts.in_use, "in use"), (counts.tainted, "tainted"), (counts.absent, "absent"))
    found = [f"{n} {'is' if n == 1 else 'are'} {state}" for n, state in states if n]
    return ", ".join((f"{counts.there} {'exists' if counts.there == 1 else 'exist'}", *found))


def _holder(claim: ClaimView, world: WorldView) -> Holder:
    entry = world.ledger.claim(claim.uid)
    owner = entry.owner if entry is not None else NO_QUEUE
    queue = f'queue "{owner}"' if owner else "no queue is charged"
    pods = [f"{pod.namespace}/{pod.name}" for pod in world.facts.consumers(claim)]
    used = f"used by {some_of(pods)}" if pods else "no pod uses it"
    return Holder(f"{claim} ({queue}; {used})", claim.namespace, owner)
