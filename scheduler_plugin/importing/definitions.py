"""What entries count, as the Queue's model accepts it, under names that mean one thing."""

from __future__ import annotations

from collections.abc import Iterable

from kube.models import flaws
from scheduler_plugin.importing.drafts import Entry, entry_body
from scheduler_plugin.importing.findings import Unsaid
from scheduler_plugin.importing.foreign import UNLIMITED
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.share_models import Share


def of_class(name: str) -> Definition:
    """The devices of a class."""
    return Definition(name=name, device_class=name)


def accepted(definition: Definition, others: Iterable[Definition] = ()) -> Definition | Unsaid:
    """The definition, or why a Queue that has the others cannot have it."""
    if any(other.name == definition.name and other != definition for other in others):
        return Unsaid(f"Another entry has the name {definition.name} and counts something else.")
    body = entry_body(Entry(definition, 0, UNLIMITED))
    for path, sentence in flaws(Share, body):
        return Unsaid(f"An entry cannot have this {path}: {sentence}")
    return definition
