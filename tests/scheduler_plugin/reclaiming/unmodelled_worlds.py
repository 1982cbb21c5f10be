"""Drawn worlds in which something that the decision does not know keeps pods off some nodes.

A volume, an affinity, a spread: of a kind of pods it says on which nodes they can run. The model is
a plain table of who has which device; it plays kube-scheduler, the kubelets, and those who make
evicted pods anew, until nothing moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import count
from random import Random

from scheduler_plugin.judging.equivalence_classes import placement_class
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.placement.node_placements import NodePlacements
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_node_object,
    a_slice_object,
)

VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
MOST_ROUNDS = 60
Device = tuple[str, str]
"""Its node and its name."""


class UnmodelledWorld:
    """Queue `mine` is below its quota, `robots` have all that they have beyond theirs.

    Attributes:
        in_vain: Evictions for a pod that was not bound then, by how many devices its kind asks for,
            and the node.
        waiting: Of each pod that waits, how many devices it asks for.
        told: What is said of those for whom nobody goes.
    """

    def __init__(self, seed: int, *, remembers: bool = True) -> None:
        """Where nothing is remembered, each round finds the same pods waiting for the same."""
        self._draw = Random(seed)
        self._names = count()
        self.in_vain: Counter[tuple[int, str]] = Counter()
        self.waiting: dict[str, int] = {}
        self.told: dict[str, str] = {}
        self._remembers = remembers
        self._missed = MissedNodes()
        self._users: dict[Device, str] = {}
        self._devices = [
            (f"n{node}", f"d{number}")
            for node in range(self._draw.randint(1, 4))
            for number in range(self._draw.randint(1, 3))
        ]
        nodes = dict.fromkeys(node for node, _ in self._devices)
        self._fits = {
            kind: {node for node in nodes if self._draw.random() < 0.5} for kind in (1, 2, 3)
        }
        world = a_world(a_queue("mine", onvif=(20, -1)), a_queue("robots", onvif=(0, -1)))
        self._cluster = Cluster(world, *(self._slice(node) for node in nodes))
        self._cluster.waiting = {"spec": {"volumes": [VOLUME]}}
        self._cluster.nodes = {node: a_node_object(node) for node in nodes}
        self._world = world
        self._begin()

    def _slice(self, node: str) -> object:
        return a_slice_object(*(name for at, name in self._devices if at == node), node=node)

    def _begin(self) -> None:
        for device in self._devices:
            if self._draw.random() < 0.8:
                self._run(f"r{next(self._names)}", "robots", [device])
        for _ in range(self._draw.randint(1, 6)):
            self._wait(f"w{next(self._names)}", self._draw.randint(1, 3))

    def _wait(self, name: str, devices: int) -> None:
        self.waiting[name] = devices
        pod = a_pod(name, queue="mine", claims=[name], status=UNSCHEDULABLE)
        put(self._world, a_claim(name, requests=[a_request(count=devices)]), pod)

    def _run(self, name: str, queue: str, devices: list[Device]) -> None:
        results = [a_result(pool=node, device=device) for node, device in devices]
        requests = [a_request(count=len(devices))]
        claim = an_allocated_claim(name, name, queue=queue, results=results, requests=requests)
        put(self._world, claim, a_used_pod(name, queue, name, node=devices[0][0]))
        self._users |= dict.fromkeys(devices, name)
        self.waiting.pop(name, None)

    # What happens.

    def play(self) -> None:
        """Until nothing moves. Raises AssertionError if that takes too long."""
        assert not self.goes_on(MOST_ROUNDS), f"it does not end: {self.in_vain}"

    def goes_on(self, minutes: int) -> bool:
        """Whether anything still moves after so many rounds."""
        return all(self._round() for _ in range(minutes))

    def _round(self) -> bool:
        """Whether anything moved: a minute, in which who is evicted ends and nobody comes back."""
        decisions = [*self._decisions()]
        said = (
            (name, found.sentence) for name, found in decisions if isinstance(found, NoCandidates)
        )
        self.told = dict(said)
        taken = [(name, found) for name, found in decisions if isinstance(found, Targets)]
        free = [(name, found) for name, found in decisions if isinstance(found, InProgress)]
        evicted = [pod.name for _, found in taken for pod in found.pods]
        for name in evicted:
            self._end(name)
        for name, found in taken:
            self._give(name, found)
        for name, being_released in free:
            self._try(name, being_released)
        for _ in evicted:
            self._come_back()
        return bool(taken or free)

    def _decisions(self) -> Iterator[tuple[str, Targets | InProgress | NoCandidates]]:
        inventory, left_out = self._cluster.inventory(), LeftOut(self._world, self._missed, NOW)
        placements = NodePlacements(self._world, inventory, NONE_EXCLUDED, left_out)
        cycle = Cycle(self._world, NOW, NONE_EXCLUDED, placements)
        for name in [*self.waiting]:
            yield name, cycle.serve(self._pod(name))

    def _pod(self, name: str) -> PodView:
        pod = self._world.facts.pod(pod_uid(name))
        assert pod is not None
        return pod

    def _give(self, name: str, take: Targets) -> None:
        """What is held for a pod is its, if it can run there."""
        (hold,) = take.holds
        if hold.node in self._fits[self.waiting[name]]:
            self._missed.bound(self._kind(name), hold.node)
            self._run(name, "mine", [(device.pool, device.name) for device, _ in hold.devices])
        else:
            self.in_vain[self.waiting[name], hold.node] += 1
            self._miss(name, hold.node)

    def _try(self, name: str, found: InProgress) -> None:
        """kube-scheduler tries it on all nodes: somebody else may have been faster."""
        (hold,), devices = found.holds, self.waiting[name]
        for node in sorted(self._fits[devices]):
            free = [d for d in self._devices if d[0] == node and d not in self._users]
            if len(free) >= devices:
                self._run(name, "mine", free[:devices])
                return
        if hold.node not in self._fits[devices]:
            self._miss(name, hold.node)

    def _miss(self, name: str, node: str) -> None:
        if self._remembers:
            self._missed.miss(self._kind(name), [node], NOW)

    def _kind(self, name: str) -> Hashable:
        return placement_class(self._pod(name), self._world.facts)

    def _end(self, name: str) -> None:
        self._users = {device: user for device, user in self._users.items() if user != name}
        self._world.delete_pod(pod_uid(name))
        self._world.delete_claim(claim_uid(name))

    def _come_back(self) -> None:
        """Whoever was evicted is made anew, and takes what is free."""
        free = [device for device in self._devices if device not in self._users]
        if free and self._draw.random() < 0.7:
            self._run(f"r{next(self._names)}", "robots", [self._draw.choice(free)])

    # What the model says.

    def could_be_served(self) -> list[str]:
        """Pods that wait, and would fit a node without all that is used beyond quotas there."""
        return [
            name
            for name, devices in self.waiting.items()
            for node in self._fits[devices]
            if sum(self._may_be_had(device) for device in self._devices if device[0] == node)
            >= devices
        ]

    def _may_be_had(self, device: Device) -> bool:
        return not self._users.get(device, "").startswith("w")
