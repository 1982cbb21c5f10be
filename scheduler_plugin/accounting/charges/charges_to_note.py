"""What is noted on a claim of the cost of its devices, in case their slices go."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.accounting.charges.measures import counted, needs_slice
from scheduler_plugin.accounting.charges.owners import labelled_owner
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.charge_notes import charge_note, noted_amount, noted_amounts
from scheduler_plugin.objects.claims import ClaimView, ClassName, Result
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.objects.names import QueueName


def note_to_write(claim: ClaimView, facts: FactsView) -> str:
    """The note that a claim is to have; that which it has, while something is not known."""
    owner = labelled_owner(claim, facts)
    if not claim.is_allocated or owner is None:
        return ""
    if claim.uid in facts.open_looks:
        return claim.charge_note
    entries, classes = _entries(owner, facts), claim.classes_by_request
    return charge_note(
        {
            result.device_id: costs
            for result in claim.results or ()
            if (name := classes.get(result.request)) is not None
            if (costs := _costs(claim, result, name, entries, facts)) is not None
        }
    )


def _entries(owner: QueueName, facts: FactsView) -> Mapping[ResourceKey, Definition]:
    """The entries of a queue and its ancestors that count more than devices of a class."""
    queues = (facts.tree.get(name) for name in facts.tree.path(owner))
    shares = (each for queue in queues if queue is not None for each in queue.shares.items())
    return {key: share.definition for key, share in shares if share.definition is not None}


def _costs(
    claim: ClaimView,
    result: Result,
    name: ClassName,
    entries: Mapping[ResourceKey, Definition],
    facts: FactsView,
) -> Mapping[ResourceKey, int] | None:
    """What a device costs, by entry; None if the allocation alone says that."""
    needed = {key for key, entry in entries.items() if needs_slice(entry, result)}
    if result.admin_access or not needed:
        return None
    if facts.catalog.device_table.of(result.device_id) is not None:
        amounts = counted(result, name, facts.catalog)
        return {entry.key: amount for entry, amount in amounts if entry.key in needed}
    noted = noted_amounts(claim.charge_note, result.device_id)
    if noted is None:
        return None
    return {key: amount for key in needed if (amount := noted_amount(noted, key))}
