"""Judge a pod with ever more claims, queues and pods in the world.

Each pod shares one allocated claim of another queue's and asks for one of its own, six queues
deep. The baseline does nothing but look the pod's claims up. The cost of folding one event into
the ledger, the memory of the world and the time to build it are printed too. Run with
`python -m bench.verdicts`.
"""

from __future__ import annotations

import gc
import json
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter

from driver.api import CONFIGURATION_LABEL
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import ClassView, class_view
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings, Queue
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodView
from scheduler_plugin.objects.queue_objects import parse_queue

SIZES = (100, 1_000, 10_000, 100_000)
ROUNDS = 2_000
DEPTH = 6
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SETTINGS = AccountingSettings()


def queue(number: int) -> Queue:
    """Chains of `DEPTH` queues."""
    spec: dict[str, object] = {
        "namespaceSelector": {},
        "resources": [{"deviceClass": "cam", "quota": -1}],
    }
    if number % DEPTH:
        spec["parent"] = f"queue-{number - 1}"
    found = parse_queue({"metadata": {"name": f"queue-{number}"}, "spec": spec})
    assert isinstance(found, Queue), found
    return found


def claim(number: int, queues: int, *, allocated: bool) -> ClaimView:
    """A claim; an allocated one belongs to a queue and is reserved for two pods."""
    pods = [
        {"resource": "pods", "uid": uid} for uid in (f"pod-{2 * number}", f"pod-{2 * number + 1}")
    ]
    results = [{"request": "cam", "driver": "moorage.dev", "consumedCapacity": {"slots": "1"}}]
    labels = {QUEUE_LABEL: f"queue-{number % queues}"} if allocated else {}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": pods}
    request = {"name": "cam", "exactly": {"deviceClassName": "cam"}}
    name = f"{'claim' if allocated else 'own'}-{number}"
    obj = {
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels},
        "spec": {"devices": {"requests": [request]}},
        "status": status if allocated else {},
    }
    return claim_view(json.loads(json.dumps(obj)), queue_label=QUEUE_LABEL)


def pod_object(number: int, queues: int, *, bound: bool) -> dict[str, object]:
    """A pod that uses an allocated claim; one that waits names a claim of its own too."""
    names = [f"claim-{number // 2}"] if bound else [f"claim-{number}", f"own-{number}"]
    name = f"{'pod' if bound else 'waiting'}-{number}"
    labels = {QUEUE_LABEL: f"queue-{(number // 2 if bound else number + 1) % queues}"}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels},
        "spec": {
            "schedulerName": "moorage",
            "nodeName": "node-a" if bound else "",
            "resourceClaims": [{"name": n, "resourceClaimName": n} for n in names],
        },
    }


def pod(number: int, queues: int, *, bound: bool) -> PodView:
    obj = json.loads(json.dumps(pod_object(number, queues, bound=bound)))
    return pod_view(obj, SETTINGS)


def build(claims: int, queues: int) -> World:
    """As many allocated claims as said, with two bound pods each."""
    world = World(SETTINGS)
    world.put_namespace(NamespaceView("default", {}))
    labels = {CONFIGURATION_LABEL: "cam"}
    made = class_view({"metadata": {"name": "cam", "labels": labels}, "spec": {}})
    assert isinstance(made, ClassView)
    world.put_class(made)
    for number in range(queues):
        world.put_queue(queue(number))
    for number in range(2 * claims):
        world.put_pod(pod(number, queues, bound=True))
    for number in range(claims):
        world.put_claim(claim(number, queues, allocated=True))
    return world


def quantiles(act: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Median and p99 in microseconds."""
    times = []
    gc.collect()
    for number in range(rounds):
        start = perf_counter()
        act(number)
        times.append(perf_counter() - start)
    times.sort()
    return times[rounds // 2] * 1e6, times[rounds * 99 // 100] * 1e6


def measure(claims: int) -> None:
    """One line of the curve."""
    queues, rounds = max(DEPTH, claims // 10), min(ROUNDS, claims)
    start = perf_counter()
    world = build(claims, queues)
    built = perf_counter() - start
    waiting = [pod(number, queues, bound=False) for number in range(rounds)]
    for number in range(rounds):
        world.put_claim(claim(number, queues, allocated=False))

    def look_up(number: int) -> object:
        return world.facts.claims_of(waiting[number])

    def decide(number: int) -> None:
        found = waiting[number]
        world.assumptions.forget(found.uid)
        verdict = judge(found, world.facts.claims_of(found), world)
        assert isinstance(verdict, Admitted), verdict
        assume(found, verdict, world, NOW)

    events = [claim(number, queues, allocated=True) for number in range(rounds)]

    def fold(number: int) -> None:
        world.delete_claim(events[number].uid)
        world.put_claim(events[number])

    baseline, _ = quantiles(look_up, rounds)
    verdict, slow_verdict = quantiles(decide, rounds)
    event, _ = quantiles(fold, rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{claims:7} {queues:7} {baseline:9.1f} {verdict:9.1f} {slow_verdict:8.1f}"
        f" {verdict / baseline:6.1f} {event / 2:9.1f} {built:8.2f} {peak:8.0f}"
    )


def main() -> None:
    print("microseconds; a verdict is forgotten, judged and assumed; pods are twice the claims")
    print(" claims  queues  baseline   verdict      p99  ratio     event  built s  RSS MiB")
    for claims in SIZES:
        measure(claims)


if __name__ == "__main__":
    main()
