"""Unusable properties: properties of devices that containers do not get as environment.

    Instance ──container_properties──► properties that containers get
        └──────denied_properties─────► properties that they do not get, and why

A denied property is denied as environment only. It is still an attribute of the device.
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

MOST_SENTENCES = 3
"""Most sentences about one Configuration."""


def denied_properties(instance: Instance) -> Mapping[str, str]:
    """Names of properties that become no variables, each with the reason as a clause."""
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
    """Sentences about the unusable properties of each Configuration's Instances."""
    return derived(inventory, _by_configuration)


def _by_configuration(inventory: Inventory) -> Mapping[ConfigurationName, tuple[str, ...]]:
    found: dict[ConfigurationName, list[str]] = {}
    for instance in inventory.instances:
        for sentence in derived(instance, _sentences):
            found.setdefault(instance.configuration, []).append(sentence)
    return {name: few(sentences) for name, sentences in found.items()}


def _sentences(instance: Instance) -> tuple[str, ...]:
    return (*_unusable(instance), *_denied_sentences(instance))


def _unusable(instance: Instance) -> Iterator[str]:
    """Properties with bytes that no variable can have; their names may be those of attributes."""
    for name in sorted(k for k, v in instance.properties.items() if UNUSABLE.search(k + v)):
        yield (
            f"Property {shown(name)} of Instance {instance.name} has a NUL byte or bytes that are"
            " not UTF-8, so no container gets it."
        )


def _denied_sentences(instance: Instance) -> Iterator[str]:
    for name, why in denied_properties(instance).items():
        yield f"No container gets property {shown(name)} of Instance {instance.name}: {why}."


def few(sentences: list[str]) -> tuple[str, ...]:
    """The first sentences, and the number of the others."""
    more = len(sentences) - MOST_SENTENCES
    first = sorted(sentences)[:MOST_SENTENCES]
    return (*first, f"The same is true of {more} more.") if more > 0 else tuple(first)
