"""What the entries of queues charge for a claim, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scheduler_plugin.accounting.charges.costs import claim_cost
from scheduler_plugin.accounting.charges.entries import ClaimEntry
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.measures import charges_text, is_class
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.viewing.measured_rows import queue_of_cost


def cost_sentence(world: WorldView, claim: ClaimView, entry: ClaimEntry) -> str:
    """What each entry charges, device by device, after a blank; "" if only classes are charged."""
    queue = queue_of_cost(entry)
    shown = _shown(world, queue, entry.cost)
    if all(is_class(key) for key, _ in shown):
        return ""
    if not claim.is_allocated:
        return f" It costs at most {charges_text(shown)}."
    return f" It is charged {'; '.join(_by_device(world, claim, queue))}."


def _by_device(world: WorldView, claim: ClaimView, queue: QueueName) -> Iterator[str]:
    for result in claim.results or ():
        alone = claim_cost(replace(claim, results=(result,)), world.facts.catalog)
        if shown := _shown(world, queue, alone):
            yield f"{charges_text(shown)} for device {result.device} of driver {result.driver}"


def _shown(world: WorldView, queue: QueueName, cost: Charges) -> Charges:
    keys = world.facts.tree.shown_keys(queue, [key for key, _ in cost])
    return Charges(tuple((key, cost[key]) for key in keys))
