"""Messages for people: the targets and the reason, or why nothing is evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.measures import amount_text
from scheduler_plugin.reclaiming.expected_charges import NoCandidates, Shortfall
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.placement.node_fit import Placement
from scheduler_plugin.reclaiming.victims.victims import Protection, Victim


@dataclass(frozen=True, slots=True)
class Unserved:
    """Why nothing is evicted for a head.

    Attributes:
        short_of: The resources that it lacks.
        shortfall: The nearest limit that has no room; None where devices are lacking.
        protected: The number of protected claims and pods, by reason.
        held_back: Why one pod may not be evicted now, by the API server: it names the budget.
        nodes: Why nodes with matching devices do not fit it.
    """

    short_of: tuple[ResourceKey, ...]
    shortfall: Shortfall | None
    protected: Counter[Protection] = field(default_factory=Counter)
    held_back: str = ""
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class KnownNoCandidates:
    """The result for a head that found no candidates; it holds for its whole kind in a cycle."""

    head: str
    found: NoCandidates

    def of(self, head: Head) -> NoCandidates:
        """The result for another head of the kind."""
        rest = self.found.sentence.removeprefix(self.head)
        is_of_head = rest != self.found.sentence
        return replace(self.found, sentence=f"{head}{rest}") if is_of_head else self.found


def taken(head: Head, victims: Collection[Victim], places: Sequence[Placement]) -> str:
    """Why these targets are evicted for a head."""
    where = ", ".join(str(place) for place in places if place.devices or place.node)
    leaves = f", which leaves it {where}" if where else ""
    why = f'{head} of queue "{head.queue}" {_claim_to(head, victims)}'
    return f"{why}. So {_given_up(victims)}{leaves}."


def _claim_to(head: Head, victims: Collection[Victim]) -> str:
    """Why the head may have what these targets use."""
    if all(victim.owner == head.queue for victim in victims):
        return f"has priority {head.priority} in that queue"
    tree = head.cases[0].world.facts.tree
    keys = _keys(tree.shown_keys(head.queue, [key for key, _ in head.adds]))
    return f"is within the share of {keys} that is guaranteed to its queue"


def _given_up(victims: Collection[Victim]) -> str:
    what = ", ".join(f'{v.what} of queue "{v.owner}" (priority {v.priority})' for v in victims)
    pods = len(frozenset().union(*(victim.pods for victim in victims)))
    return f"{what} is given up by all its users ({pods} pod{'s' if pods != 1 else ''})"


def no_candidates_text(
    head: Head, unserved: Unserved, is_within_share: bool, is_below_quota: bool
) -> str:
    """Why nothing is evicted for a head.

    A queue below its quota may have its whole share all the same: where the quotas of it and its
    siblings add up to more than is guaranteed to the queue above.
    """
    lacks = f"{head} waits: {_lacks(unserved)}"
    if is_within_share:
        stays = _who_stays(unserved, "of another queue uses more than the queue's share")
        return f"{lacks}, and {stays}{_more(unserved)}."
    stays = _who_stays(unserved, "of this queue has a lower priority")
    has = f'queue "{head.queue}" would be over its quota with it'
    if is_below_quota:
        has = (
            f'queue "{head.queue}" would have more than its share: the quotas below the queue above'
            " it add up to more than is guaranteed to that"
        )
    return f"{lacks}, {has}, and {stays}."


def _lacks(unserved: Unserved) -> str:
    short = unserved.shortfall
    if short is None:
        return f"no matching device is free ({_keys(unserved.short_of)})"
    needed = f"{amount_text(short.key, short.amount)} {short.key}"
    return f'queue "{short.place}" has no room below its limit for {needed} more'


def _who_stays(unserved: Unserved, otherwise: str) -> str:
    counts = [(count, why) for why, count in unserved.protected.most_common() if count]
    if not counts:
        return f"no pod {otherwise}"
    why = "; ".join(f"{count} claims or pods {why}" for count, why in counts)
    return f"no other pod can be evicted: {why}"


def _more(unserved: Unserved) -> str:
    more = (unserved.held_back.removesuffix("."), unserved.nodes)
    return "".join(f"; {each}" for each in more if each)


def _keys(keys: Iterable[ResourceKey]) -> str:
    return ", ".join(dict.fromkeys(map(str, keys)))
