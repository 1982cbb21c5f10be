"""What a pod lacks that accounting admits, and that kube-scheduler finds no node for: devices.

kube-scheduler never asks about such a pod, since its own filter comes first. So the pod itself
tells: that it was tried, and that a claim of it is not allocated, or that it asks for slots. Why it
was refused only a text says, which is not looked at: whether a device is lacking is seen from the
devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from scheduler_plugin.accounting.charges.costs import is_accounted
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.gangs import could_come, is_of_gang, living_members
from scheduler_plugin.objects.amounts import Charges, ResourceKey, summed
from scheduler_plugin.objects.claims import Alternative, ClaimView, ClassName
from scheduler_plugin.objects.devices.catalog import LEGACY_PREFIX
from scheduler_plugin.objects.names import NO_POD, PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.wants import (
    Nobody,
    holds_of,
    names_of,
    served_with_another,
    tried_cases,
)

MOST_CHOICES = 16
"""How many combinations of a pod's alternatives are looked at."""

MOST_DEVICES = 32
"""How many devices of one pod."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Devices of one kind.

    Attributes:
        claim: The name of the claim that asks for them; "" for a request of the pod's own.
        alternative: For a request of the pod's own it bears the resource's name.
    """

    claim: str
    alternative: Alternative


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """A pod that has to find a node with devices.

    Attributes:
        choices: Of these one is enough: devices that claims ask for.
        resources: What it asks for beside its claims. A node has it, or a device of the class
            stands for it; without a class only the former.
        beside: The pod on whose node it has to be; "" for none.
    """

    pod: PodView
    choices: tuple[tuple[Ask, ...], ...]
    resources: tuple[Ask, ...] = ()
    beside: PodUid = NO_POD

    @property
    def asks(self) -> tuple[Ask, ...]:
        """All kinds of devices that may serve it."""
        of_claims = (ask for choice in self.choices for ask in choice)
        by_class = (ask for ask in self.resources if ask.alternative.device_class)
        return tuple(dict.fromkeys((*of_claims, *by_class)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWant:
    """A pod that waits for devices, or several that go together.

    Attributes:
        holds: What is to be held for each that pays, but for the devices.
        keys: As what the devices count.
    """

    seekers: tuple[Seeker, ...]
    holds: tuple[Hold, ...]
    keys: tuple[ResourceKey, ...]

    @property
    def pod(self) -> PodView:
        """Whose turn it is."""
        return self.seekers[0].pod

    @property
    def added(self) -> Charges:
        """What their queue would be charged."""
        return summed(hold.usage for hold in self.holds)

    @property
    def pods(self) -> tuple[PodView, ...]:
        return tuple(seeker.pod for seeker in self.seekers)

    def __str__(self) -> str:
        return names_of(self.pods)


def may_want_device(pod: PodView) -> bool:
    """Whether a pod was tried, and waits with a claim or a request of its own."""
    asks = pod.claims or pod.requests
    return pod.unschedulable and pod.may_be_bound and not pod.gates and bool(asks)


def device_want_of(pod: PodView, world: WorldView) -> DeviceWant | Nobody:
    """What devices a pod lacks, if it lacks any; in doubt it lacks none."""
    pods = _together(pod, world)
    if isinstance(pods, Nobody):
        return pods
    cases = _admitted(pods, world)
    if isinstance(cases, Nobody):
        return cases
    if not any(_asks_for_accounted(each, world) for each in pods):
        return Nobody(f"{names_of(pods)} waits for no device that queues count.")
    if served := served_with_another(pods, world):
        return Nobody(served)
    holds, seekers = holds_of(cases), seekers_of(pods, world)
    if isinstance(seekers, str):
        unmet = holds[0].queue if holds else None
        return Nobody(f"{names_of(pods)} waits for a device, and {seekers}", unmet)
    if not holds:
        waits = f"{names_of(pods)} waits for a device"
        return Nobody(f"{waits} that nobody, or more than one, would pay for.")
    keys = dict.fromkeys(key for hold in holds for key, _ in hold.usage)
    if not keys:
        return Nobody(f"{names_of(pods)} waits for all devices of a class that has none.")
    return DeviceWant(seekers=seekers, holds=holds, keys=tuple(keys))


def _admitted(pods: Sequence[PodView], world: WorldView) -> list[Case] | Nobody:
    cases = tried_cases(pods, world)
    if isinstance(cases, Nobody):
        return cases
    if any(lacks_room for _, lacks_room in cases):
        return Nobody(f"{names_of(pods)} waits for room, and not for a device.")
    return [case for case, _ in cases]


def _together(pod: PodView, world: WorldView) -> list[PodView] | Nobody:
    """The pod, and as many of its group as have to find devices with it: those bound have theirs.

    What is assumed of the others is not enough here: they were let go, and found nothing.
    """
    facts = world.facts
    if why := why_not_ours(pod, facts.settings):
        return Nobody(why)
    if not is_of_gang(pod, facts):
        return [pod]
    group = facts.group(pod.namespace, pod.group)
    if group is None:
        return Nobody(f"{pod} goes with its PodGroup {pod.namespace}/{pod.group}, not there yet.")
    members = list(living_members(pod, facts))
    least = (group.min_member or len(members)) - sum(member.is_bound for member in members)
    others = [m for m in members if m.uid != pod.uid and could_come(m, world)]
    if len(others) + 1 < least:
        goes = f"PodGroup {pod.namespace}/{pod.group} goes as a whole"
        return Nobody(f"{goes}: {least} pods more, and {len(others) + 1} wait for devices.")
    turns = sorted(others, key=lambda m: (not m.unschedulable, -m.priority, m.created, m.name))
    return [pod, *turns[: max(0, least - 1)]]


def _asks_for_accounted(pod: PodView, world: WorldView) -> bool:
    catalog = world.facts.catalog
    if any(catalog.accounted_resource(name) is not None for name, _ in pod.requests):
        return True
    return any(is_accounted(claim, catalog) for claim in _open_claims(pod, world))


def _open_claims(pod: PodView, world: WorldView) -> list[ClaimView]:
    return [claim for claim in world.facts.claims_of(pod) if not claim.is_allocated]


# What each has to find.


def seekers_of(pods: Sequence[PodView], world: WorldView) -> tuple[Seeker, ...] | str:
    """What each pod has to find; or what keeps from saying so, for the end of a sentence.

    A claim that several of them share has its devices once, and all of them are where these are.
    """
    found: list[Seeker] = []
    shared: dict[str, PodUid] = {}
    for pod in pods:
        seeker = _seeker(world.facts.without_lost_claim(pod), shared, world)
        if isinstance(seeker, str):
            return seeker
        found.append(seeker)
        for claim in pod.claim_names:
            shared.setdefault(claim, seeker.beside or pod.uid)
    return tuple(found)


def _seeker(pod: PodView, shared: dict[str, PodUid], world: WorldView) -> Seeker | str:
    if pod.extended_claim:
        return f"a claim was made for the extended resources of {pod}: that is not looked at."
    claims = _open_claims(pod, world)
    beside = dict.fromkeys(shared[claim.name] for claim in claims if claim.name in shared)
    if len(beside) > 1:
        return f"{pod} shares claims with several pods that wait: that is not looked at."
    own = [claim for claim in claims if claim.name not in shared]
    if doubt := _doubt(own):
        return doubt
    asks = [[Ask(c.name, a) for a in r.alternatives] for c in own for r in c.requests]
    resources = tuple(_resource(name, count, world) for name, count in pod.requests if count)
    return Seeker(
        pod=pod,
        choices=tuple(product(*asks)),
        resources=resources,
        beside=next(iter(beside), NO_POD),
    )


def _resource(name: str, count: int, world: WorldView) -> Ask:
    stands_for = world.facts.catalog.resource_class(name) or ClassName("")
    return Ask("", Alternative(name=name, device_class=stands_for, count=count))


def _doubt(claims: Sequence[ClaimView]) -> str:
    requests = [(claim, request) for claim in claims for request in claim.requests]
    for claim, request in requests:
        for alternative in request.alternatives:
            if alternative.admin_access:
                return f"{claim} asks for administrative access: that is not looked at."
    most = sum(max(a.count or 0 for a in request.alternatives) for _, request in requests)
    choices = prod(len(request.alternatives) for _, request in requests)
    if most > MOST_DEVICES or choices > MOST_CHOICES:
        return "so many devices and alternatives are not looked at."
    return ""


def lacking(want: DeviceWant, world: WorldView) -> str:
    """What is not free, for a sentence."""
    claims = dict.fromkeys(ask.claim for seeker in want.seekers for ask in seeker.asks if ask.claim)
    asks = [ask for seeker in want.seekers for choice in seeker.choices for ask in choice]
    what = "it"
    if len(claims) == 1:
        found = world.facts.claim_named(want.pod.namespace, next(iter(claims)))
        what = str(found) if found is not None else what
    if len(asks) == 1 and asks[0].alternative.count == 1:
        return f"no device that would do for {what}"
    return f"not what would do for {what}"


def nodes_of_resources(seeker: Seeker, world: WorldView) -> Iterator[str]:
    """Nodes whose device plugin may have some of what the pod asks for beside claims."""
    names = {ask.alternative.name for ask in seeker.resources}
    for instance in world.facts.catalog.instances() if names else ():
        has = f"{LEGACY_PREFIX}{instance.configuration}", f"{LEGACY_PREFIX}{instance.name}"
        if not names.isdisjoint(has):
            yield from instance.nodes
