"""The inventory of a node: the devices that its discovery handlers report for each Configuration.

    Configurations, answers of handlers ──inventory_of──► Inventory ──► instances, slices

A Configuration that no handler has answered for, or that an edit made invalid, is unheard. Its
published devices stay as they are, since a missing answer does not mean that devices are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from driver.api import Configuration, ConfigurationName, NodeName
from driver.configurations.configurations import Verdict, holders
from driver.derived import Deriving, derived
from driver.devices import Device
from driver.environment_rules import BUILT_IN, EnvironmentRules
from driver.instances.instances import Instance, by_rules, instances_of
from driver.instances.names import NONE_TAKEN, Collision, TakenNames
from driver.instances.rivals import ResolveNodes, resolve_none, with_nodes


@dataclass(frozen=True, slots=True)
class Heard(Deriving):
    """The last answers of handlers about one Configuration.

    Attributes:
        uid: UID of the Configuration that was asked for. One that was recreated is asked for again.
        local: Devices that only this node can see.
        shared: Devices that other nodes may see, too.
        complete: Whether all sources that may have reported a device before have answered. If not,
            missing devices do not count as gone.
    """

    uid: str
    local: tuple[Device, ...] = ()
    shared: tuple[Device, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Host:
    """Facts about a node that the inventory needs beside its devices.

    Attributes:
        resolve_nodes: Resolves a path of the host to its device nodes.
        rules: Which properties of devices become environment of containers.
    """

    resolve_nodes: ResolveNodes = resolve_none
    rules: EnvironmentRules = BUILT_IN


PLAIN_HOST = Host()


@dataclass(frozen=True, slots=True)
class Inventory(Deriving):
    """All that this node offers at one moment.

    Attributes:
        configurations: Configurations in force with known devices.
        instances: Their devices, sorted by name; `local` are those that only this node can see.
        unheard: Configurations whose devices are not all known now. Their earlier devices stay.
        collisions: Devices without an Instance, by Configuration; see `names`.
        rules: Which properties of devices become environment of containers.
    """

    configurations: Mapping[ConfigurationName, Configuration]
    instances: tuple[Instance, ...]
    unheard: frozenset[ConfigurationName]
    collisions: Mapping[ConfigurationName, tuple[Collision, ...]] = field(default_factory=dict)
    rules: EnvironmentRules = BUILT_IN

    @property
    def local(self) -> tuple[Instance, ...]:
        return tuple(i for i in self.instances if not i.shared)

    @property
    def shared(self) -> tuple[Instance, ...]:
        return tuple(i for i in self.instances if i.shared)


def in_force(verdicts: Iterable[Verdict]) -> tuple[Configuration, ...]:
    """The Configurations to discover devices for: they are valid and hold their name."""
    held = holders(verdicts).values()
    return tuple(v.configuration for v in held if v.configuration is not None)


def inventory_of(
    verdicts: Iterable[Verdict],
    heard: Mapping[ConfigurationName, Heard],
    node: NodeName,
    taken: Callable[[Configuration], TakenNames] = lambda _: NONE_TAKEN,
    host: Host = PLAIN_HOST,
) -> Inventory:
    """The inventory of `node`, from all Configurations and the answers about each.

    Args:
        verdicts: All Configurations.
        heard: The answers about each.
        node: The node.
        taken: Returns the names of a Configuration's Instances that are taken.
        host: Other facts about the node.
    """
    rules = host.rules
    known: dict[ConfigurationName, Configuration] = {}
    unheard: set[ConfigurationName] = set()
    instances: list[Instance] = []
    collisions: dict[ConfigurationName, tuple[Collision, ...]] = {}
    for name, verdict in sorted(holders(verdicts).items()):
        answer = heard.get(name)
        if verdict.configuration is None or answer is None or answer.uid != verdict.uid:
            unheard.add(name)
            continue
        known[name] = configuration = verdict.configuration
        found, unnamed = derived(answer, _named, configuration, node, taken(configuration))
        ruled = found if rules == BUILT_IN else [derived(i, by_rules, rules) for i in found]
        instances.extend(with_nodes(ruled, host.resolve_nodes))
        if unnamed:
            collisions[name] = unnamed
        if not answer.complete:
            unheard.add(name)
    return Inventory(known, tuple(instances), frozenset(unheard), collisions, rules)


def _named(
    answer: Heard, configuration: Configuration, node: NodeName, taken: TakenNames
) -> tuple[tuple[Instance, ...], tuple[Collision, ...]]:
    return instances_of(answer.local, answer.shared, configuration, node, taken)


def withdrawn(inventory: Inventory) -> Inventory:
    """The inventory for a path by which the node offers no devices any more."""
    return replace(inventory, instances=(), unheard=frozenset())
