"""The checker's own count: what is charged, to whom, along the tree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.chaos.measures import measured_cost
from tests.chaos.objects import (
    DRIVER,
    EXTENDED_CLASS,
    OTHERS_CLASSES,
    PREFIX,
    QUEUE,
    Object,
    Snapshot,
    is_non_preemptible,
    is_placed,
    label,
    of_ours,
    queue_of,
    reserved_for,
    shown,
    uid,
)
from tests.chaos.queue_tree import Tree

Amounts = Mapping[str, int]
"""How much of each resource, named as Queues name it."""


@dataclass(frozen=True)
class Charge:
    """One entry of a ledger.

    Attributes:
        what: The claim or pod, for people.
        uid: Its UID.
        queue: The owner.
        amounts: What it costs.
        is_non_preemptible: Whether a pod of the owner uses it that may not be evicted.
    """

    what: str
    uid: str
    queue: str
    amounts: Amounts
    is_non_preemptible: bool


def tree_of(snapshot: Snapshot) -> Tree:
    return Tree({queue["metadata"]["name"]: queue for queue in snapshot.all("queues")})


def cost(claim: Object, snapshot: Snapshot) -> Amounts:
    """What an allocated claim costs: each device once, or as many slots as it takes.

    A device counts as its Configuration, which its slice says, whatever class it was asked by;
    one of a vendor as entries of Queues say.
    """
    shown = configurations_shown(snapshot)
    amounts = measured_cost(claim, tree_of(snapshot), snapshot)
    for result in of_ours(claim):
        if not result.get("adminAccess"):
            slots = (result.get("consumedCapacity") or {}).get("slots", 1)
            place = (result["pool"], result["device"])
            amounts[shown.get(place) or resource_asked(claim, result["request"])] += int(slots)
    return {resource: amount for resource, amount in amounts.items() if amount}


def configurations_shown(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    """The Configuration of each published device of ours, by pool and name."""
    specs = (body["spec"] for body in snapshot.all("resourceslices"))
    return {
        (spec["pool"]["name"], device["name"]): device["attributes"]["configuration"]["string"]
        for spec in specs
        if spec["driver"] == DRIVER
        for device in spec.get("devices") or ()
    }


def resource_asked(claim: Object, request: str) -> str:
    """The Configuration whose devices a request asks for, or one of its alternatives does.

    A result names it by `request/alternative`.
    """
    name, _, alternative = request.partition("/")
    found = next(r for r in claim["spec"]["devices"]["requests"] if r["name"] == name)
    if alternative:
        found = next(a for a in found["firstAvailable"] if a["name"] == alternative)
        return resource_of(found["deviceClassName"])
    return resource_of(found["exactly"]["deviceClassName"])


def resource_of(device_class: str) -> str:
    """What Queues list for a DeviceClass: its Configuration, which most are named after."""
    return OTHERS_CLASSES.get(device_class, device_class)


def slots_asked(pod: Object) -> Amounts:
    """What a pod asks of the device-plugin path: init containers' most, sidecars' and others' sum.

    The same names are DRA's extended resources where a claim was made for them; that is charged.
    """
    if (pod.get("status", {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName"):
        return {}
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for container in pod["spec"].get("initContainers") or ():
        asked = _limits(container)
        if container.get("restartPolicy") == "Always":
            running.update(asked)
            most |= running
        else:
            most |= running + asked
    for container in pod["spec"]["containers"]:
        running.update(_limits(container))
    return dict(most | running)


def _limits(container: Object) -> Counter[str]:
    resources = container.get("resources") or {}
    found = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return Counter(
        {
            name.removeprefix(prefix): int(amount)
            for name, amount in found.items()
            for prefix in (PREFIX, EXTENDED_CLASS)
            if name.startswith(prefix)
        }
    )


def charges(snapshot: Snapshot) -> Iterator[Charge]:
    """All of them: claims that have an owner and devices, and pods with slots of their own."""
    pods = snapshot.pods_by_uid()
    for claim in snapshot.all("resourceclaims"):
        owner, amounts = label(claim, QUEUE), cost(claim, snapshot)
        if owner and amounts:
            users = [pods[each] for each in reserved_for(claim, snapshot) if each in pods]
            own = [u for u in users if is_placed(u) and queue_of(u, snapshot) == owner]
            held = any(is_non_preemptible(user) for user in own)
            yield Charge(f"ResourceClaim {shown(claim)}", uid(claim), owner, amounts, held)
    for pod in snapshot.all("pods"):
        if is_placed(pod) and (asked := slots_asked(pod)):
            queue, held = queue_of(pod, snapshot), is_non_preemptible(pod)
            if amounts := by_resource(asked, snapshot):
                yield Charge(f"Pod {shown(pod)}", uid(pod), queue, amounts, held)


def by_resource(asked: Amounts, snapshot: Snapshot) -> Amounts:
    """Names of Instances become those of their Configurations, which is what Queues list.

    What neither exists of, nobody can have: an Instance stays for as long as it has users.
    """
    found: Counter[str] = Counter()
    owners = {
        body["metadata"]["name"]: body["spec"]["configurationName"]
        for body in snapshot.all("instances")
    }
    known = {name for _, name in snapshot.objects.get("configurations", {})} | {*owners.values()}
    for name, amount in asked.items():
        if (resource := owners.get(name, name)) in known:
            found[resource] += amount
    return dict(found)


def usage(found: Iterable[Charge], tree: Tree) -> dict[str, dict[str, int]]:
    """What is charged to each queue: its own charges, and those of its descendants."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for charge in found:
        for queue in tree.path(charge.queue):
            sums[queue].update(charge.amounts)
    return {queue: dict(amounts) for queue, amounts in sums.items()}
