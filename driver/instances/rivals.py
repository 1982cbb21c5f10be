"""Rivals: Instances of several Configurations that are the same device of the host.

    devices, resolved paths ──with_nodes──► Instances with the keys of their device nodes
    Instances of a node ──rivalries──► Instances with common nodes, which exclude each other

Device nodes are the same if their numbers are equal, or if their paths resolve to the same path.
Two functions of one camera have two nodes, and are two devices. If all Configurations offer a
device to several users concurrently, sharing is intended; they are rivals only if one of them
offers it to a single user. Devices on the network have no nodes, and no rivals.

Within a Configuration the handler tells devices apart. A node that several of its devices have is
something that they have in common, such as a control node, and identifies none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from posixpath import normpath

from driver.derived import derived
from driver.instances.instances import Instance

ResolveNodes = Callable[[str], Collection[str]]
"""The real path and the number of the device node at a path of the host, as far as known."""

COMMON_NODES = frozenset({"/dev/vfio/vfio", "c10:196"})
"""Nodes that each virtual machine gets with any passed-through device; they identify none."""


def resolve_none(path: str) -> Collection[str]:
    """Resolve no path: the default if paths of the host cannot be resolved."""
    return ()


def with_nodes(
    instances: Iterable[Instance], resolve_nodes: ResolveNodes = resolve_none
) -> tuple[Instance, ...]:
    """The Instances of a Configuration, each with the keys of its device nodes."""
    found = tuple(_with_nodes(instance, resolve_nodes) for instance in instances)
    common = _common(found)
    return tuple(derived(i, _without, common) for i in found) if common else found


def _with_nodes(instance: Instance, resolve_nodes: ResolveNodes) -> Instance:
    if instance.nodes or not instance.device_specs:
        return derived(instance, _with_keys, frozenset[str]())
    resolved = (resolve_nodes(spec.host_path) for spec in instance.device_specs)
    return derived(instance, _with_keys, frozenset[str]().union(*resolved))


def _with_keys(instance: Instance, resolved: frozenset[str]) -> Instance:
    paths = {normpath(spec.host_path) for spec in instance.device_specs}
    nodes = (instance.nodes | paths | resolved) - COMMON_NODES
    return replace(instance, nodes=nodes) if nodes != instance.nodes else instance


def _without(instance: Instance, common: frozenset[str]) -> Instance:
    return replace(instance, nodes=instance.nodes - common)


def _common(instances: Collection[Instance]) -> frozenset[str]:
    """Keys that several of these Instances have."""
    nodes = [instance.nodes for instance in instances]
    if sum(map(len, nodes)) == len(frozenset().union(*nodes)):  # The fast path, nearly always.
        return frozenset()
    counts = Counter(node for those in nodes for node in those)
    return frozenset(node for node, count in counts.items() if count > 1)


@dataclass(frozen=True, slots=True)
class Rivalry:
    """Instances that have device nodes in common.

    Attributes:
        nodes: The keys of these nodes.
        instances: The Instances, sorted by name, usually each of another Configuration.
    """

    nodes: tuple[str, ...]
    instances: tuple[Instance, ...]

    @property
    def node(self) -> str:
        """The first path among the keys; the first key if there is no path."""
        return min(self.nodes, key=shown_first)


def shown_first(node: str) -> tuple[bool, str]:
    """Sort key of device nodes in sentences: paths come first."""
    return not node.startswith("/dev/"), node


def is_shareable(instance: Instance) -> bool:
    """Whether its Configuration offers it to several users concurrently."""
    return instance.capacity > 1


def rivalries(instances: Iterable[Instance]) -> tuple[Rivalry, ...]:
    """The Instances of a node that exclude each other, whatever their order."""
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
