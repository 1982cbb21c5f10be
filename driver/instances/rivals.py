"""Rivals: Instances of several Configurations that are one and the same device of the host.

    devices, where their paths lead ──with_nodes──► Instances with what tells their device nodes
    Instances of a node ──rivalries──► which have nodes in common, and so exclude each other

Device nodes are the same where their numbers are equal, or the paths that theirs lead to. Two
functions of one camera have two nodes, and are two devices. What two Configurations offer to
several users at a time is shared by intent: only where one of them gives it to one user, they are
rivals. Devices on the network have no nodes, and no rivals.

Within a Configuration its handler tells devices apart. A node that several of them have is that of
what they have in common, such as a control node, and tells none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from posixpath import normpath

from driver.derived import derived
from driver.instances.instances import Instance

LeadsTo = Callable[[str], Collection[str]]
"""The real path and the number of the device node at a path of the host, as far as known."""

NOBODYS_NODES = frozenset({"/dev/vfio/vfio", "c10:196"})
"""Those that each virtual machine gets with whatever device it takes over."""


def leads_nowhere(path: str) -> Collection[str]:
    """Where nobody says where paths lead."""
    return ()


def with_nodes(
    instances: Iterable[Instance], leads_to: LeadsTo = leads_nowhere
) -> tuple[Instance, ...]:
    """The Instances of a Configuration, each with what tells its device nodes."""
    found = tuple(_with_nodes(instance, leads_to) for instance in instances)
    common = _common(found)
    return tuple(derived(i, _without, common) for i in found) if common else found


def _with_nodes(instance: Instance, leads_to: LeadsTo) -> Instance:
    if instance.nodes or not instance.device_specs:
        return derived(instance, _told, frozenset[str]())
    led = (leads_to(spec.host_path) for spec in instance.device_specs)
    return derived(instance, _told, frozenset[str]().union(*led))


def _told(instance: Instance, led: frozenset[str]) -> Instance:
    paths = {normpath(spec.host_path) for spec in instance.device_specs}
    nodes = (instance.nodes | paths | led) - NOBODYS_NODES
    return replace(instance, nodes=nodes) if nodes != instance.nodes else instance


def _without(instance: Instance, common: frozenset[str]) -> Instance:
    return replace(instance, nodes=instance.nodes - common)


def _common(instances: Collection[Instance]) -> frozenset[str]:
    """What tells nodes of several of these."""
    nodes = [instance.nodes for instance in instances]
    if sum(map(len, nodes)) == len(frozenset().union(*nodes)):  # as nearly always, and quick
        return frozenset()
    counts = Counter(node for those in nodes for node in those)
    return frozenset(node for node, count in counts.items() if count > 1)


@dataclass(frozen=True, slots=True)
class Rivalry:
    """Instances that have device nodes in common.

    Attributes:
        nodes: What tells those nodes.
        instances: By name, each of another Configuration as a rule.
    """

    nodes: tuple[str, ...]
    instances: tuple[Instance, ...]

    @property
    def node(self) -> str:
        """The first path, else whatever there is."""
        return min(self.nodes, key=shown_first)


def shown_first(node: str) -> tuple[bool, str]:
    """The order in which to name device nodes to people: by their paths, if they can be."""
    return not node.startswith("/dev/"), node


def is_shareable(instance: Instance) -> bool:
    """Whether its Configuration offers it to several users at a time."""
    return instance.capacity > 1


def rivalries(instances: Iterable[Instance]) -> tuple[Rivalry, ...]:
    """Who excludes whom, among the Instances of a node; the same for any order of them."""
    known = tuple(instances)
    common = _common(known)
    by_node: dict[str, list[Instance]] = defaultdict(list)
    concerned = (i for i in known if not common.isdisjoint(i.nodes)) if common else ()
    for instance in sorted(concerned, key=_key):
        for node in instance.nodes & common:
            by_node[node].append(instance)
    groups: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for node, those in by_node.items():
        if _are_rivals(those):
            groups[tuple(map(_key, those))].append(node)
    found = (tuple(sorted(nodes)) for _, nodes in sorted(groups.items()))
    return tuple(Rivalry(nodes, tuple(by_node[nodes[0]])) for nodes in found)


def _key(instance: Instance) -> tuple[str, str]:
    return instance.name, instance.namespace


def _are_rivals(those: Collection[Instance]) -> bool:
    configurations = {instance.configuration for instance in those}
    return len(configurations) > 1 and not all(map(is_shareable, those))
