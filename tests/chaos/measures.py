"""What vendors' devices cost by the entries of Queues, and what is noted of it on claims.

A device that is published no more costs what it cost, as far as its claim says so: the checker
remembers all devices, and believes the note only that it is there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.chaos.entries import Entry
from tests.chaos.findings import Finding
from tests.chaos.objects import (
    QUEUE,
    VENDORS,
    Key,
    Object,
    Snapshot,
    annotation,
    label,
    results,
    shown,
    uid,
)
from tests.chaos.quantities import amount
from tests.chaos.queue_tree import Tree

NOTE = "moorage.dev/charged"
REMEMBERED = "devices"
"""The kind, in a snapshot, of all devices of vendors that were published at any time."""


def measured_cost(claim: Object, tree: Tree, snapshot: Snapshot) -> Counter[str]:
    """What each entry is charged for the vendors' devices of an allocated claim."""
    amounts: Counter[str] = Counter()
    listed, paid = devices(snapshot), set[Key]()
    for result in of_vendors(claim):
        place = place_of(result)
        pays = place not in paid and is_first(claim, place, snapshot)
        paid.add(place)
        for entry, counted in _counted(claim, result, tree, snapshot):
            is_known = place in listed or not entry.needs_device(result)
            if (is_known or place in noted(claim)) and (pays or not entry.counter):
                amounts[entry.name] += counted
    return amounts


def _counted(
    claim: Object, result: Object, tree: Tree, snapshot: Snapshot
) -> Iterator[tuple[Entry, int]]:
    """Of a device that is published no more, the entries of the owner and its ancestors count."""
    place = place_of(result)
    device = known_devices(snapshot).get(place, {})
    is_listed = place in devices(snapshot)
    for entry in tree.entries() if is_listed else tree.entries(tree.path(label(claim, QUEUE))):
        if not entry.is_class and entry.counts(result, class_asked(claim, result), device):
            yield entry, entry.amount_of(result, device)


def is_first(claim: Object, place: Key, snapshot: Snapshot) -> bool:
    """Whether no other claim has had a part of the device for longer: who has pays its counters."""
    sharers = [
        each
        for each in snapshot.all("resourceclaims")
        if any(place_of(result) == place for result in of_vendors(each))
    ]
    return uid(claim) == uid(min((*sharers, claim), key=_age))


def _age(claim: Object) -> tuple[str, str]:
    return (claim["status"]["allocation"].get("allocationTimestamp", ""), uid(claim))


def is_in_doubt(claim: Object, tree: Tree, snapshot: Snapshot) -> bool:
    """Whether a slice went before the cost of its device could be noted, which is told in docs."""
    entries = [*tree.entries(tree.path(label(claim, QUEUE)))]
    return any(
        place_of(result) not in devices(snapshot)
        and place_of(result) not in noted(claim)
        and any(entry.needs_device(result) for entry in entries if not entry.is_class)
        for result in of_vendors(claim)
    )


def note_findings(tree: Tree, snapshot: Snapshot) -> Iterator[Finding]:
    """What is noted on claims is what their devices cost; it is there while slices are."""
    for claim in snapshot.all("resourceclaims"):
        if label(claim, QUEUE) in tree.queues:
            for result in of_vendors(claim):
                yield from _misnoted(claim, result, tree, snapshot)


def _misnoted(claim: Object, result: Object, tree: Tree, snapshot: Snapshot) -> Iterator[Finding]:
    place, about = place_of(result), f"claim {shown(claim)}"
    own = {entry.name for entry in tree.entries(tree.path(label(claim, QUEUE)))}
    wanted = {
        entry.name: counted
        for entry, counted in _counted(claim, result, tree, snapshot)
        if counted and entry.name in own and entry.needs_device(result)
    }
    told = noted(claim).get(place)
    if told is None and wanted and place in devices(snapshot):
        yield Finding("note", about, f"it does not say what {place} costs")
    if told is not None and {name: n for name, n in told.items() if n} != wanted:
        yield Finding("note", about, f"it says of {place} {told}, which costs {wanted}")


def lost_notes(before: Object | None, after: Object, snapshot: Snapshot) -> Iterator[Finding]:
    """What a claim that keeps its devices and owner says no more, though no slice says it."""
    if not before or not is_same_charge(before, after):
        return
    for place in noted(before).keys() - noted(after).keys() - devices(snapshot).keys():
        yield Finding("note", f"claim {shown(after)}", f"it says no more what {place} costs")


def is_same_charge(before: Object, after: Object) -> bool:
    return bool(results(after)) and (results(before), label(before, QUEUE)) == (
        results(after),
        label(after, QUEUE),
    )


def noted(claim: Object) -> dict[Key, dict[str, int]]:
    """The note of a claim: amounts by device and name."""
    found = json.loads(annotation(claim, NOTE) or "{}")
    return {
        (where.rpartition("/")[0], where.rpartition("/")[2]): {
            name: amount(text) for name, text in amounts.items()
        }
        for where, amounts in found.items()
    }


def of_vendors(claim: Object) -> list[Object]:
    """The devices that a claim has of vendors."""
    return [result for result in results(claim) if result["driver"] in VENDORS]


def class_asked(claim: Object, result: Object) -> str:
    """The class by which a claim got a device; a result names its request, and alternative."""
    name, _, alternative = result["request"].partition("/")
    found = next(r for r in claim["spec"]["devices"]["requests"] if r["name"] == name)
    if alternative:
        found = next(a for a in found["firstAvailable"] if a["name"] == alternative)
        return str(found["deviceClassName"])
    return str(found["exactly"]["deviceClassName"])


def place_of(result: Object) -> Key:
    """Driver and pool, and the device."""
    return (f"{result['driver']}/{result['pool']}", result["device"])


def devices(snapshot: Snapshot) -> dict[Key, Object]:
    """All devices of vendors that are published now."""
    found: dict[Key, Object] = {}
    for body in snapshot.all("resourceslices"):
        found |= devices_of(body)
    return found


def devices_of(body: Object) -> dict[Key, Object]:
    """The devices of a slice, if it is a vendor's."""
    spec = body["spec"]
    where = f"{spec['driver']}/{spec['pool']['name']}"
    is_theirs = spec["driver"] in VENDORS
    return {(where, d["name"]): d for d in spec.get("devices") or () if is_theirs}


def known_devices(snapshot: Snapshot) -> Mapping[Key, Object]:
    """These, and those that were published once."""
    return {**snapshot.objects.get(REMEMBERED, {}), **devices(snapshot)}
