"""Drawn worlds: the usage of each name is the sum over allocations, whatever happened before."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler_plugin.accounting.charges.charges_to_note import note_to_write
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.charge_notes import noted_amounts
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.devices.device_looks import cel_device
from scheduler_plugin.objects.devices.devices import SliceView, slice_view
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    claim_uid,
    their_class,
    usage,
)

GPU = "gpu.example.com"
LARGE = f"device.attributes['{GPU}'].model == 'large'"
ENTRIES: dict[str, dict[str, Any]] = {
    "gpus": {"name": "gpus", "driver": GPU},
    "memory": {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}},
    "mig": {
        "name": "mig",
        "driver": GPU,
        "measure": {"counter": {"set": "gpu-*", "name": "memory"}},
    },
    "large": {
        "name": "large",
        "deviceClass": "gpu",
        "selector": LARGE,
        "measure": {"capacity": "memory"},
    },
}
QUEUES = ("vision", "robots")
DEVICES, CLAIMS = ("g0", "g1", "shared"), ("c0", "c1", "c2", "c3")
UNITS = 1000

names, queues = st.sampled_from(CLAIMS), st.sampled_from(QUEUES)
devices = st.lists(st.sampled_from(DEVICES), min_size=1, max_size=3)


class Measures(RuleBasedStateMachine):
    """Queues, slices and claims come, change and go; notes are written, selectors evaluated."""

    def __init__(self) -> None:
        super().__init__()
        self.slices: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, list[str]] = {queue: [*ENTRIES] for queue in QUEUES}
        self.selected: dict[str, bool] = {}
        self.world = self.fresh()
        for device in DEVICES:
            self.put_slice(device, 80, "large")

    def fresh(self, *objects: object) -> World:
        roots = a_queue("root", resources=[*ENTRIES.values()], namespaceSelector=None)
        return a_world(
            roots,
            *(self.queue(name) for name in QUEUES),
            their_class("gpu", f"device.driver == '{GPU}'"),
            *(a_pod(name, queue="vision", claims=[name], node="a") for name in CLAIMS),
            *objects,
        )

    def queue(self, name: str) -> Any:
        entries = [ENTRIES[entry] for entry in self.entries[name]]
        return a_queue(name, parent="root", resources=entries)

    # What happens.

    @rule(name=queues, entries=st.lists(st.sampled_from([*ENTRIES]), unique=True))
    def put_queue(self, name: str, entries: list[str]) -> None:
        self.entries[name] = entries
        self.world.put_queue(self.queue(name))

    @rule(
        device=st.sampled_from(DEVICES),
        memory=st.sampled_from([10, 80]),
        model=st.sampled_from(["large", "small"]),
    )
    def put_slice(self, device: str, memory: int, model: str) -> None:
        self.slices[device] = {"memory": memory, "model": model}
        self.world.put_slice(self.slice(device))

    def slice(self, device: str) -> SliceView:
        memory = {"value": str(self.slices[device]["memory"])}
        found: dict[str, Any] = {
            "name": device,
            "attributes": {"model": {"string": self.slices[device]["model"]}},
            "capacity": {"memory": memory},
            "consumesCounters": [{"counterSet": f"gpu-{device}", "counters": {"memory": memory}}],
        }
        if device == "shared":
            found["allowMultipleAllocations"] = True
        spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": [found]}
        return slice_view({"metadata": {"name": device}, "spec": spec})

    @rule(device=st.sampled_from(DEVICES))
    def delete_slice(self, device: str) -> None:
        self.slices.pop(device, None)
        self.world.delete_slice(device)

    @rule(name=names, owner=queues, of=devices, at=st.integers(0, 9))
    def allocate(self, name: str, owner: str, of: list[str], at: int) -> None:
        results = [self.result(device, number) for number, device in enumerate(of)]
        requests = [a_request("gpu")]
        claim = a_claim(name, requests=requests, results=results, queue=owner, pods=[name])
        known = self.world.facts.claim(claim.uid)
        note = known.charge_note if known is not None and known.results == claim.results else ""
        self.world.put_claim(replace(claim, allocated_at=str(at), charge_note=note))

    def result(self, device: str, number: int) -> dict[str, Any]:
        part: dict[str, Any] = {"shareID": str(number), "consumedCapacity": {"memory": "5"}}
        return a_result(driver=GPU, pool="a", device=device, **(part if device == "shared" else {}))

    @rule(name=names)
    def ask(self, name: str) -> None:
        self.world.put_claim(a_claim(name, requests=[a_request("gpu")], queue="vision"))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.world.delete_claim(claim_uid(name))

    @rule()
    def note(self) -> None:
        """What the controller of claims does."""
        for claim in list(self.world.facts.claims()):
            note = note_to_write(claim, self.world.facts)
            self.world.put_claim(replace(claim, charge_note=note))

    @rule()
    def evaluate(self) -> None:
        for expressions, looks in self.world.facts.open_looks.by_expressions().items():
            answers = {look: _model(look) == "large" for look in looks}
            self.selected |= answers
            self.world.put_selected(expressions, answers)

    # What holds.

    @invariant()
    def usage_is_the_sum_over_allocations(self) -> None:
        for queue in (*QUEUES, "root"):
            listed = self.entries.get(queue, [*ENTRIES])
            found = {str(key): amount for key, amount in usage(self.world, queue)}
            assert {name: found[name] for name in listed if name in found} == self.plain(
                queue, listed
            ), queue

    def plain(self, queue: str, listed: list[str]) -> dict[str, int]:
        sums: Counter[str] = Counter()
        for claim in self.world.facts.claims():
            if claim.is_allocated and queue in (claim.label, "root"):
                sums.update(self.cost(claim))
        return {name: sums[name] for name in listed if sums[name]}

    def cost(self, claim: ClaimView) -> Counter[str]:
        found: Counter[str] = Counter()
        paid: set[DeviceId] = set()
        for result in claim.results or ():
            device = result.device_id
            pays = device not in paid and self.pays(claim, device)
            found.update(self.device_cost(claim, device, dict(result.consumed), pays=pays))
            paid.add(device)
        return found

    def pays(self, claim: ClaimView, device: DeviceId) -> bool:
        sharers = [c for c in self.world.facts.claims() if device in c.parts]
        return (
            device not in claim.parts
            or claim.uid == min((each.allocated_at, each.uid) for each in sharers)[1]
        )

    def device_cost(
        self, claim: ClaimView, device: DeviceId, consumed: dict[str, int], *, pays: bool
    ) -> Counter[str]:
        listed = self.slices.get(device.name)
        noted = noted_amounts(claim.charge_note, device) if listed is None else None
        if noted is not None:
            cost = {name: int(text) * UNITS for name, text in noted.items()}
            cost.setdefault("memory", consumed.get("memory", 0))
            return Counter({"gpus": 1, **cost, "mig": cost.get("mig", 0) if pays else 0})
        has = 0 if listed is None else listed["memory"] * UNITS
        memory, large = consumed.get("memory", has), self.is_large(device.name)
        counted = has if pays else 0
        return Counter({"gpus": 1, "memory": memory, "mig": counted, "large": memory * large})

    def is_large(self, device: str) -> bool:
        """Until it was evaluated a device counts."""
        if device not in self.slices:
            return True
        (listed,) = self.slice(device).devices
        return self.selected.get(listed.look, True)

    @invariant()
    def a_restart_changes_nothing(self) -> None:
        objects: list[object] = [*self.world.facts.claims(), *map(self.slice, self.slices)]
        random.Random(0).shuffle(objects)
        rebuilt = self.fresh(*objects)
        rebuilt.put_selected((LARGE,), self.selected)
        for claim in list(rebuilt.facts.claims()):
            rebuilt.delete_claim(claim.uid)
            rebuilt.put_claim(claim)
        assert rebuilt.ledger.by_queue() == self.world.ledger.by_queue()

    @invariant()
    def a_note_keeps_the_cost_of_what_goes(self) -> None:
        """Noted now, and restarted after all slices are gone, each queue has the same usage."""
        claims = list(self.world.facts.claims())
        if self.world.facts.open_looks or not self.slices.keys() >= {*DEVICES}:
            return
        noted = (replace(c, charge_note=note_to_write(c, self.world.facts)) for c in claims)
        rebuilt = self.fresh(*noted)
        for queue in QUEUES:
            assert self.listed(rebuilt, queue) == self.listed(self.world, queue)

    def listed(self, world: World, queue: str) -> dict[str, int]:
        found = {str(key): amount for key, amount in usage(world, queue)}
        return {name: found[name] for name in self.entries[queue] if name in found}


def _model(look: str) -> Any:
    return cel_device(look)["attributes"][GPU]["model"]


TestMeasures = Measures.TestCase
TestMeasures.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
