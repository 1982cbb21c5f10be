"""Unusable properties: what a device says of itself and no container can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from driver.api import ConfigurationName
from driver.derived import derived
from driver.discovery.details import shown
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory

UNUSABLE = re.compile(r"[\0\ud800-\udfff]")
"""A NUL ends a variable; lone surrogates stand for bytes that were no UTF-8."""

MOST_TOLD = 3
"""Of one Configuration."""


def unusable_sentences(inventory: Inventory) -> Mapping[ConfigurationName, tuple[str, ...]]:
    """What is wrong with properties of each Configuration's Instances."""
    return derived(inventory, _by_configuration)


def _by_configuration(inventory: Inventory) -> Mapping[ConfigurationName, tuple[str, ...]]:
    found: dict[ConfigurationName, list[str]] = {}
    for instance in inventory.instances:
        for sentence in derived(instance, _sentences):
            found.setdefault(instance.configuration, []).append(sentence)
    return {name: few(sentences) for name, sentences in found.items()}


def _sentences(instance: Instance) -> tuple[str, ...]:
    """Of one Instance. A name that no variable may have is left alone: it may be an attribute's."""
    names = sorted(k for k, v in instance.properties.items() if UNUSABLE.search(k + v))
    return tuple(
        f"Property {shown(name)} of Instance {instance.name} holds a NUL or bytes that are no text,"
        " so no container gets it."
        for name in names
    )


def few(sentences: list[str]) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    more = len(sentences) - MOST_TOLD
    told = sorted(sentences)[:MOST_TOLD]
    return (*told, f"So it is with {more} more.") if more > 0 else tuple(told)
