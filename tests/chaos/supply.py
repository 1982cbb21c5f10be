"""Free devices, as the checker counts them: what is published, less what claims have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.chaos.charges import slots_asked
from tests.chaos.objects import DRIVER, Object, Snapshot, of_ours

Place = tuple[str, str]
"""Pool and device."""


@dataclass(frozen=True)
class Free:
    """A device that has room.

    Attributes:
        place: Which it is.
        resource: Its Configuration.
        slots: How many uses it has room for.
        nodes: Which nodes may use it; nothing is all.
    """

    place: Place
    resource: str
    slots: int
    nodes: frozenset[str] | None


def free_devices(snapshot: Snapshot) -> Iterator[Free]:
    """Those that carry no taint, of the newest generation of each pool.

    Without DRA they are the Instances' slots that nobody has.
    """
    if "resourceslices" not in snapshot.objects:
        yield from _of_instances(snapshot)
        return
    taken = _taken(snapshot)
    for spec in _newest(snapshot):
        yield from _of_slice(spec, taken)


def _of_instances(snapshot: Snapshot) -> Iterator[Free]:
    configurations = {name for _, name in snapshot.objects.get("configurations", {})}
    for body in snapshot.all("instances"):
        spec, name = body["spec"], body["metadata"]["name"]
        free = sum(not holder for holder in (spec.get("deviceUsage") or {}).values())
        if free and spec["configurationName"] in configurations:
            nodes = frozenset(spec.get("nodes") or ())
            yield Free(("", name), spec["configurationName"], free, nodes)


def asks_for_what_is_gone(pod: Object, snapshot: Snapshot) -> bool:
    """Whether a pod has slots of a Configuration that is gone, with its devices."""
    names = {name for _, name in snapshot.objects.get("configurations", {})}
    return any(name not in names for name in slots_asked(pod))


def is_away(place: Place, snapshot: Snapshot) -> bool:
    """Whether a device cannot be used now: it is tainted, or published no more."""
    return not any(
        place == (spec["pool"]["name"], device["name"]) and not device.get("taints")
        for spec in _newest(snapshot)
        for device in spec.get("devices") or ()
    )


def _newest(snapshot: Snapshot) -> Iterator[Object]:
    """What the slices of the newest generation of each pool say."""
    slices = [s for s in snapshot.all("resourceslices") if s["spec"]["driver"] == DRIVER]
    newest: dict[str, int] = {}
    for body in slices:
        pool = body["spec"]["pool"]
        newest[pool["name"]] = max(newest.get(pool["name"], 0), pool["generation"])
    for body in slices:
        pool = body["spec"]["pool"]
        if pool["generation"] == newest[pool["name"]]:
            yield body["spec"]


def _of_slice(spec: Object, taken: Mapping[Place, int]) -> Iterator[Free]:
    for device in spec.get("devices") or ():
        place = (spec["pool"]["name"], device["name"])
        slots = _slots(device) - taken.get(place, 0)
        if slots > 0 and not device.get("taints"):
            resource = device["attributes"]["configuration"]["string"]
            seen_by = device if spec.get("perDeviceNodeSelection") else spec
            yield Free(place, resource, slots, _nodes(seen_by))


def _slots(device: Object) -> int:
    if not device.get("allowMultipleAllocations"):
        return 1
    return int(device["capacity"]["slots"]["value"])


def _nodes(seen_by: Object) -> frozenset[str] | None:
    """What a slice, or a device of it, says of its nodes."""
    if "nodeName" in seen_by:
        return frozenset({seen_by["nodeName"]})
    if seen_by.get("allNodes"):
        return None
    (term,) = seen_by["nodeSelector"]["nodeSelectorTerms"]
    return frozenset(value for e in term["matchExpressions"] for value in e["values"])


def _taken(snapshot: Snapshot) -> Counter[Place]:
    taken: Counter[Place] = Counter()
    for claim in snapshot.all("resourceclaims"):
        for result in of_ours(claim):
            if not result.get("adminAccess"):
                slots = int((result.get("consumedCapacity") or {}).get("slots", 1))
                taken[result["pool"], result["device"]] += slots
    return taken


def ready_nodes(snapshot: Snapshot) -> set[str]:
    """Nodes that pods can be put on."""
    return {
        node["metadata"]["name"]
        for node in snapshot.all("nodes")
        if not node["spec"].get("unschedulable")
        and not any(
            taint["effect"] != "PreferNoSchedule" for taint in node["spec"].get("taints") or ()
        )
        and any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in node.get("status", {}).get("conditions") or ()
        )
    }
