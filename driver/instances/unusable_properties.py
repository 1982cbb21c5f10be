"""Unusable properties: what a device says of itself and no container can be told.

    Instance ──container_properties──► what containers are told
        └──────denied_properties─────► what they are not, and why not

That a property is denied concerns environment alone: it is an attribute all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from driver.api import ConfigurationName
from driver.derived import derived
from driver.discovery.details import shown
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory

UNUSABLE = re.compile(r"[\0\ud800-\udfff]")
"""A NUL ends a variable; lone surrogates stand for bytes that were no UTF-8."""

MOST_TOLD = 3
"""Of one Configuration."""


def denied_properties(instance: Instance) -> Mapping[str, str]:
    """Names of properties that become no variables, each with why not, as a clause."""
    return derived(instance, _denied)


def container_properties(instance: Instance) -> Mapping[str, str]:
    """The properties that may become variables; the very same mapping if all may."""
    denied = denied_properties(instance)
    if not denied:
        return instance.properties
    return {name: value for name, value in instance.properties.items() if name not in denied}


def _denied(instance: Instance) -> Mapping[str, str]:
    rules = instance.rules
    found = {
        name: rules.unprivileged_refusal(name)
        if name in instance.unprivileged
        else rules.refusal(name)
        for name in instance.properties
    }
    return {name: why for name, why in sorted(found.items()) if why}


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
    return (*_unusable(instance), *_told_of_denied(instance))


def _unusable(instance: Instance) -> Iterator[str]:
    """A name that no variable may have is left alone: it may be an attribute's."""
    for name in sorted(k for k, v in instance.properties.items() if UNUSABLE.search(k + v)):
        yield (
            f"Property {shown(name)} of Instance {instance.name} holds a NUL or bytes that are no"
            " text, so no container gets it."
        )


def _told_of_denied(instance: Instance) -> Iterator[str]:
    for name, why in denied_properties(instance).items():
        yield f"No container gets property {shown(name)} of Instance {instance.name}: {why}."


def few(sentences: list[str]) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    more = len(sentences) - MOST_TOLD
    told = sorted(sentences)[:MOST_TOLD]
    return (*told, f"So it is with {more} more.") if more > 0 else tuple(told)
