"""What claims ask of vendors: the most that it may cost, and whether devices for it are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.entries import is_selected
from tests.chaos.measures import devices_of, of_vendors, place_of
from tests.chaos.objects import (
    QUEUE,
    VENDORS,
    Key,
    Object,
    Snapshot,
    allocation,
    claims_of,
    label,
)
from tests.chaos.quantities import amount
from tests.chaos.queue_tree import Tree

AND = " && "


@dataclass(frozen=True)
class Offer:
    """A device that a vendor's driver publishes.

    Attributes:
        place: Driver and pool, and its name.
        node: Which node has it.
        body: What its slice says.
    """

    place: Key
    node: str
    body: Object

    @property
    def driver(self) -> str:
        return self.place[0].partition("/")[0]

    @property
    def is_divided(self) -> bool:
        return bool(self.body.get("allowMultipleAllocations"))

    def part(self, request: Object) -> dict[str, int]:
        """How much of its capacities a request gets: of one that nobody divides all."""
        asked = (request.get("capacity") or {}).get("requests") or {}
        return {
            name: rounded(asked.get(name), has) if self.is_divided else amount(has["value"])
            for name, has in (self.body.get("capacity") or {}).items()
        }

    def suits(self, request: Object) -> bool:
        """Whether it is of the class, selected, and large enough. A class is a driver's here."""
        cel = (each["cel"]["expression"] for each in request.get("selectors") or ())
        asked = (request.get("capacity") or {}).get("requests") or {}
        has, part = self.body.get("capacity") or {}, self.part(request)
        return (
            request["deviceClassName"] == self.driver
            and all(is_selected(self.body, word) for each in cel for word in each.split(AND))
            and all(
                name in has and amount(much) <= part[name] <= amount(has[name]["value"])
                for name, much in asked.items()
            )
        )


def rounded(asked: str | None, has: Object) -> int:
    """A request as the API server rounds it: up to the next step from the least."""
    policy = has.get("requestPolicy")
    if not policy:
        return amount(has["value"] if asked is None else asked)
    if asked is None:
        return amount(policy["default"])
    least, step = amount(policy["validRange"]["min"]), amount(policy["validRange"]["step"])
    return least + max(0, -(-(amount(asked) - least) // step) * step)


def offers(snapshot: Snapshot) -> list[Offer]:
    return [
        Offer(place, body["spec"]["nodeName"], device)
        for body in snapshot.all("resourceslices")
        for place, device in devices_of(body).items()
    ]


def most_asked(request: Object, tree: Tree, snapshot: Snapshot) -> Counter[str]:
    """The most that each entry may be charged for a request, by the devices that suit it."""
    found: Counter[str] = Counter()
    for offer in offers(snapshot):
        if offer.suits(request):
            found |= Counter(dict(_costs(offer, request, tree)))
    return Counter({name: each * int(request.get("count", 1)) for name, each in found.items()})


def _costs(offer: Offer, request: Object, tree: Tree) -> Iterator[tuple[str, int]]:
    part = {name: str(much) for name, much in offer.part(request).items()}
    result = {"driver": offer.driver, "consumedCapacity": part}
    for entry in tree.entries():
        if not entry.is_class and entry.counts(result, request["deviceClassName"], offer.body):
            yield entry.name, entry.amount_of(result, offer.body)


def are_free(requests: list[Object], node: str, snapshot: Snapshot) -> bool:
    """Whether a node has devices for all of them, as far as taking one by one finds them."""
    if not requests:
        return True
    room = Room.of(snapshot)
    mine = [offer for offer in offers(snapshot) if offer.node == node]
    return all(room.takes(request, mine) for request in requests)


def asked_of_vendors(claim: Object) -> list[Object]:
    return [each for each in first_choices(claim) if each["deviceClassName"] in VENDORS]


def has_a_choice(pod: Object, snapshot: Snapshot) -> bool:
    """Whether a pod waits for the one or the other, of which this checker does not judge."""
    return any(
        "firstAvailable" in request
        for claim in claims_of(pod, snapshot)
        if not (allocation(claim) and label(claim, QUEUE))
        for request in claim["spec"]["devices"]["requests"]
    )


def first_choices(claim: Object) -> Iterator[Object]:
    """What each request of a claim asks for, or would rather have."""
    for request in claim["spec"]["devices"]["requests"]:
        yield request.get("exactly") or request["firstAvailable"][0]


@dataclass
class Room:
    """What is taken of devices, and left of the counters that they consume."""

    taken: dict[Key, Counter[str]]
    counters: Counter[tuple[str, str]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Room:
        found = cls({}, Counter())
        for body in snapshot.all("resourceslices"):
            for each in body["spec"].get("sharedCounters") or ():
                for name, has in each["counters"].items():
                    found.counters[each["name"], name] += amount(has["value"])
        known = {offer.place: offer for offer in offers(snapshot)}
        for claim in snapshot.all("resourceclaims"):
            for result in of_vendors(claim):
                consumed = result.get("consumedCapacity") or {}
                part = {name: amount(much) for name, much in consumed.items()}
                found.take(place_of(result), part, known.get(place_of(result)))
        return found

    def takes(self, request: Object, mine: list[Offer]) -> bool:
        """Take as many devices as it asks for, each another one."""
        wanted = int(request.get("count", 1))
        for offer in mine:
            if wanted and offer.suits(request) and self._is_free(offer, request):
                self.take(offer.place, offer.part(request), offer)
                wanted -= 1
        return not wanted

    def take(self, place: Key, part: dict[str, int], offer: Offer | None) -> None:
        if place not in self.taken and offer:
            self.counters.subtract(dict(consumed(offer.body)))
        self.taken.setdefault(place, Counter()).update(part)

    def _is_free(self, offer: Offer, request: Object) -> bool:
        taken = self.taken.get(offer.place)
        if taken is None:
            return all(self.counters[each] >= n for each, n in consumed(offer.body))
        has, part = offer.body.get("capacity") or {}, offer.part(request)
        return offer.is_divided and all(
            taken[name] + much <= amount(has[name]["value"]) for name, much in part.items()
        )


def consumed(device: Object) -> Iterator[tuple[tuple[str, str], int]]:
    """Counters that a device consumes while it is in use, each by its set."""
    for each in device.get("consumesCounters") or ():
        for name, counter in each["counters"].items():
            yield (each["counterSet"], name), amount(counter["value"])
