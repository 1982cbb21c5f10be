"""Sentences for the status of Configurations about devices that several of them offer.

See `rivals`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from driver.api import ConfigurationName
from driver.derived import derived
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.rivals import Rivalry, rivalries
from driver.instances.unusable_properties import few

CLAIMED = "while a claim has it through one Configuration, none gets it through the other."
SLOTS = "nothing keeps two pods from using it at the same time, one through each Configuration."


def rival_sentences(
    inventory: Inventory, *, claims: bool
) -> Mapping[ConfigurationName, tuple[str, ...]]:
    """Sentences about the devices of each Configuration that another Configuration has, too.

    Args:
        inventory: The inventory of a node.
        claims: Whether devices are offered through DRA, which keeps claims of rivals apart. The
            device plugin does not keep their slots apart.
    """
    return derived(inventory, _by_configuration, CLAIMED if claims else SLOTS)


def _by_configuration(
    inventory: Inventory, outcome: str
) -> Mapping[ConfigurationName, tuple[str, ...]]:
    found: dict[ConfigurationName, list[str]] = defaultdict(list)
    for rivalry in rivalries(inventory.instances):
        for instance in rivalry.instances:
            sentence = f"{_sentence(instance, rivalry)}: {outcome}"
            found[instance.configuration].append(sentence)
    return {name: few(sentences) for name, sentences in found.items()}


def _sentence(instance: Instance, rivalry: Rivalry) -> str:
    others = ", ".join(
        f"Instance {other.name} of Configuration {other.configuration}"
        for other in rivalry.instances
        if other.configuration != instance.configuration
    )
    return f"The device of Instance {instance.name}, {rivalry.node}, is that of {others}, too"
