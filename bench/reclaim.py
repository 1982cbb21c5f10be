"""How long a decision about who has to go takes, and its longest step.

10,000 claims of 1,000 queues, all over their quotas, with one device each on 100 nodes; 1,000 pods
wait. `room`: who leaves room below a limit. `place`: the same, and a place on a node then; what is
read for it costs nothing here. `no place`: no node would do, whoever went.

python -m bench.reclaim
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import quantiles

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Take
from scheduler_plugin.reclaiming.free_places import Step
from scheduler_plugin.reclaiming.places.evidence import Evidence, Known, Unread
from scheduler_plugin.reclaiming.places.node_room import NodeRoom, node_room, pod_needs
from scheduler_plugin.reclaiming.places.offers import DeviceRequest, by_node, device_request, offers
from scheduler_plugin.reclaiming.room import decide
from scheduler_plugin.reclaiming.room_places import decide_room
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_claim_object,
    a_pod,
    a_pod_object,
    a_queue,
    a_result,
    a_world,
    an_allocated_claim,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import a_node_object, a_slice_object

QUEUES, CLAIMS, WAITING, NODES = 1_000, 10_000, 1_000, 100
IN_VAIN = 10
"""How many pods wait that no node would do for."""


def a_busy_world() -> World:
    """Half of the queues use everything, below ten parents; the others wait for their quotas."""
    world = a_world(a_queue("root", onvif=(CLAIMS, CLAIMS)))
    for number in range(10):
        put(world, a_queue(f"team{number}", parent="root", onvif=(CLAIMS // 10, -1)))
    for number in range(QUEUES):
        quota = 1 if number % 2 else 2 * CLAIMS // QUEUES
        put(world, a_queue(f"q{number}", parent=f"team{number % 10}", onvif=(quota, -1)))
    for number in range(CLAIMS):
        queue, node = f"q{(number % (QUEUES // 2)) * 2 + 1}", f"n{number % NODES}"
        results = [a_result(pool=node, device=f"d{number // NODES}")]
        put(world, an_allocated_claim(f"c{number}", f"p{number}", queue=queue, results=results))
        put(world, a_pod(f"p{number}", queue=queue, claims=[f"c{number}"], node=node))
    return world


def those_who_wait(world: World, count: int) -> list[PodView]:
    pods = []
    for number in range(count):
        pod = a_pod(f"w{number}", queue=f"q{number % (QUEUES // 2) * 2}", claims=[f"w{number}"])
        put(world, a_claim(f"w{number}"), pod)
        pods.append(pod)
    return pods


class Reader:
    """What the API server would say; devices and nodes are read once."""

    def __init__(self, world: World, cpus: str) -> None:
        devices = [f"d{number}" for number in range(CLAIMS // NODES)]
        self._offers = offers(a_slice_object(*devices, node=f"n{n}") for n in range(NODES))
        self._on = by_node(self._offers)
        self._accepted: dict[DeviceRequest, dict[DeviceId, bool | None]] = {}
        self._rooms: dict[str, NodeRoom] = {}
        self._world, self._cpus = world, cpus

    def read(self, known: Known, unread: Unread) -> Evidence:
        if known.evidence is not None:
            return known.evidence.with_nodes({name: self._room(name) for name in unread.nodes})
        asks = dict.fromkeys(ask for seeker in unread.seekers for ask in seeker.asks)
        requests = {
            ask: device_request(a_claim_object(ask.claim), ask.alternative, ()) for ask in asks
        }
        pods = [seeker.pod for seeker in unread.seekers]
        wants = {"requests": {"cpu": "2"}}
        return Evidence(
            needs={
                p.uid: pod_needs(a_pod_object(p.name, claims=p.claim_names, **wants), [])
                for p in pods
            },
            requests=requests,
            offers=self._offers,
            on=self._on,
            refused={ask: {} for ask in requests},
            accepted={ask: self._accepted.setdefault(r, {}) for ask, r in requests.items()},
        )

    def _room(self, name: str) -> NodeRoom:
        if name not in self._rooms:
            there = [p.name for p in self._world.facts.pods() if p.node == name]
            node = a_node_object(name, allocatable={"cpu": self._cpus, "pods": "1000"})
            self._rooms[name] = node_room(node, [a_pod_object(p, node=name) for p in there])
        return self._rooms[name]


def measured(name: str, count: int, cpus: str = "") -> None:
    """Decide about each once, with what was decided before held; print milliseconds."""
    world = a_busy_world()
    pods, reader = those_who_wait(world, count), Reader(world, cpus)
    wholes, steps, taken = [], [], 0
    for pod in pods:
        known = Known()
        looks = decide_room(pod, world, NOW, known) if cpus else decide(pod, world, NOW)
        decision, took = timed(looks, known, reader)
        wholes.append(sum(took))
        steps += took
        if isinstance(decision, Take):
            taken += 1
            for hold in decision.holds:
                world.hold(hold)
            put(world, *(replace(user, deleting=True) for user in decision.pods))
    for what, found in (("decision", wholes), ("step", steps)):
        cuts, most = quantiles(found, n=100), max(found)
        print(f"{name}: {what}: p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f} ms, most {most:.2f} ms")
    print(f"{name}: {taken} of {len(wholes)} are served")


def timed(looks: Iterator[Step], known: Known, reader: Reader) -> tuple[Step, list[float]]:
    """The decision, and how many milliseconds each step took; reading is no part of it."""
    steps, last, found = [], time.perf_counter(), None
    for found in looks:
        steps.append(1000 * (time.perf_counter() - last))
        if isinstance(found, Unread):
            known.evidence = reader.read(known, found)
        last = time.perf_counter()
    return found, steps


def main() -> None:
    measured("room", WAITING)
    measured("place", WAITING, cpus="4")
    measured("no place", IN_VAIN, cpus="1")


if __name__ == "__main__":
    main()
