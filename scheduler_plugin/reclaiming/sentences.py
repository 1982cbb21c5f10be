"""What people are told: who goes for whom and why, or why no pod goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.victims.victims import Protection, Victim
from scheduler_plugin.reclaiming.wants import Nobody, Shortage


@dataclass(frozen=True, slots=True)
class Unserved:
    """Why no pod goes for a head.

    Attributes:
        lacking: Of what it has too little.
        shortage: The nearest limit at which it does not fit; None where it is devices that lack.
        protected: How many claims and pods stay, by the reason.
        held_back: What the API server says of one that may not be evicted now: it names the budget.
        nodes: Why nodes with devices that would do are none for it.
    """

    lacking: tuple[ResourceKey, ...]
    shortage: Shortage | None
    protected: Counter[Protection] = field(default_factory=Counter)
    held_back: str = ""
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class InVain:
    """What was found for a head holds for others of its kind in the same cycle."""

    head: str
    found: Nobody

    def of(self, head: Head) -> Nobody:
        """The same for another head."""
        told = self.found.sentence.removeprefix(self.head)
        is_of_head = told != self.found.sentence
        return replace(self.found, sentence=f"{head}{told}") if is_of_head else self.found


def taken(head: Head, victims: Collection[Victim], places: Sequence[Place]) -> str:
    """Who gives up what for a head."""
    where = ", ".join(str(place) for place in places if place.devices or place.node)
    leaves = f", which leaves it {where}" if where else ""
    why = f'{head} of queue "{head.queue}" {_claim_to(head, victims)}'
    return f"{why}. So {_given_up(victims)}{leaves}."


def _claim_to(head: Head, victims: Collection[Victim]) -> str:
    """What gives it a right to what these hold."""
    if all(victim.owner == head.queue for victim in victims):
        return f"has priority {head.priority} in it"
    keys = _keys(key for key, _ in head.adds)
    return f"is within the share of {keys} that is guaranteed to its queue"


def _given_up(victims: Collection[Victim]) -> str:
    what = ", ".join(f'{v.what} of queue "{v.owner}" (priority {v.priority})' for v in victims)
    pods = len(frozenset().union(*(victim.pods for victim in victims)))
    return f"{what} is given up by all who use it ({pods} pod{'s' if pods != 1 else ''})"


def nobody(head: Head, unserved: Unserved, is_within_share: bool, is_below_quota: bool) -> str:
    """Why no pod goes for a head.

    A queue that is below its quota may have its share nevertheless: where quotas beside it add up
    to more than what is guaranteed to the queue above.
    """
    lacks = f"{head} waits: {_lacks(unserved)}"
    if is_within_share:
        stays = _who_stays(unserved, "else has anything above the share of a queue")
        return f"{lacks}, and {stays}{_more(unserved)}."
    stays = _who_stays(unserved, "of it has less priority")
    has = f'queue "{head.queue}" would be over its quota with it'
    if is_below_quota:
        has = (
            f'queue "{head.queue}" would have more than its part of what is guaranteed to the queue'
            " above it, to which the quotas below it add up to more than that"
        )
    return f"{lacks}, {has}, and {stays}."


def _lacks(unserved: Unserved) -> str:
    short = unserved.shortage
    if short is None:
        return f"no device that would do is free ({_keys(unserved.lacking)})"
    return f'queue "{short.place}" has no room below its limit for {short.amount} {short.key} more'


def _who_stays(unserved: Unserved, otherwise: str) -> str:
    counts = [(count, why) for why, count in unserved.protected.most_common() if count]
    if not counts:
        return f"nobody {otherwise}"
    why = "; ".join(f"{count} claims or pods {why}" for count, why in counts)
    return f"nobody else can go: {why}"


def _more(unserved: Unserved) -> str:
    more = (unserved.held_back.removesuffix("."), unserved.nodes)
    return "".join(f"; {each}" for each in more if each)


def _keys(keys: Iterable[ResourceKey]) -> str:
    return ", ".join(dict.fromkeys(keys))
