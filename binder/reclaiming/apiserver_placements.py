"""Nodes and devices for each cycle, with evaluated CEL selectors.

A pod takes part in a cycle after its selectors were evaluated for all devices once. Later changes
of devices are evaluated concurrently; until then a changed device may match.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, NoReturn

from binder.reclaiming.answers_processes import SelectorEvaluator
from binder.reclaiming.apiserver_context import ReclaimContext
from kube.cel.api import CelProcess, NotEvaluatedError, digest_of
from kube.reconciling.api import Done, Failed, Reconciler, Result
from scheduler_plugin.objects.api import STRIDE, PodView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.api import (
    NONE_EXCLUDED,
    DeviceCriteria,
    DeviceRequest,
    ExcludedPods,
    Inventory,
    LeftOut,
    MissedNodes,
    NoCandidates,
    NodePlacements,
    demands_of,
    evaluable,
    gang_of,
)

MOST_REPORTED = 100
"""The largest number of pods with a condition of slow selectors, for each evaluation."""

MOST_SELECTIONS = 10_000
"""The largest number of evaluated selections to remember."""

BEFORE_ALL = -1
"""The version of the devices after an evaluation that did not reach all devices."""


class Selection(NamedTuple):
    """Selectors to evaluate.

    Attributes:
        criteria: The criteria for each device.
        drivers: The drivers of the devices; () for all.
        reported: Digests of expressions that take too long, by the conditions of the requesting
            pods; a pod's condition does not count for another pod.
    """

    criteria: DeviceCriteria
    drivers: tuple[str, ...]
    reported: frozenset[str]


class PlacementSource:
    """Provides nodes and devices for cycles, and evaluates selectors while `run` runs."""

    def __init__(self, context: ReclaimContext, inventory: Inventory, missed: MissedNodes) -> None:
        self._writes = context.writes
        self._world = context.world
        self._clock = context.clock
        self._inventory = inventory
        self._missed = missed
        self._cel = CelProcess()
        self._evaluator = SelectorEvaluator(self._cel, inventory.devices, inventory.answers)
        # The version of the devices that was evaluated last, and the pods to evaluate for.
        self._known: dict[Selection, int] = {}
        self._asked_for: dict[Selection, dict[PodUid, None]] = {}
        self._problem = ""
        self._queue: Reconciler[Selection] = Reconciler("selectors", self._evaluate)

    async def run(self) -> NoReturn:
        """Evaluate until cancelled."""
        try:
            await self._queue.run()
        finally:
            await self._cel.close()

    def why_not_known(self, pod: PodView) -> str | None:
        """Why a pod's selectors are not evaluated yet; None where they are.

        "" while they are being evaluated.
        """
        pods = gang_of(pod, self._world)
        demands = () if isinstance(pods, NoCandidates) else demands_of(pods, self._world)
        missing = [
            found
            for demand in demands
            if not isinstance(demand, str)
            for request in demand.device_requests
            if (found := _selection(request, demand.pod)) and not self._is_known(found, demand.pod)
        ]
        return self._problem if missing else None

    def placements(self, excluded: ExcludedPods) -> NodePlacements:
        """Nodes and devices for one cycle."""
        left_out = LeftOut(self._world, self._missed, self._clock())
        return NodePlacements(self._world, self._inventory, excluded, left_out)

    async def free_nodes(self, pod: PodView) -> list[str]:
        """The nodes that a pod fits now."""
        found: list[str] = []
        for number, node in enumerate(self.placements(NONE_EXCLUDED).free_nodes(pod)):
            if node is not None:
                found.append(node)
            if not number % STRIDE:
                await asyncio.sleep(0)
        return found

    def _is_known(self, selection: Selection, pod: PodView) -> bool:
        known = self._known.pop(selection, None)
        if known is not None:
            self._known[selection] = known  # The most recently used are last.
        if known != self._inventory.devices.changes:
            self._asked_for.setdefault(selection, {})[pod.uid] = None
            self._queue.add(selection)
        return known is not None

    async def _evaluate(self, selection: Selection) -> Result:
        criteria, drivers, reported = selection
        changes, pods = self._inventory.devices.changes, self._waiting_pods_of(selection)
        devices = self._inventory.devices.of_drivers(drivers)
        try:
            found = await self._evaluator.evaluate(criteria, devices, reported)
        except NotEvaluatedError as error:
            self._problem = f"The CEL selectors of a pod cannot be evaluated: {error}"
            return Failed(error)
        self._problem = ""
        self._known[selection] = changes if found.is_complete else BEFORE_ALL
        if len(self._known) > MOST_SELECTIONS:
            del self._known[next(iter(self._known))]
        for pod in pods[:MOST_REPORTED]:
            if not found.too_slow <= pod.too_slow:
                await self._writes.write_slow(pod, sorted(found.too_slow))
        return Done()

    def _waiting_pods_of(self, selection: Selection) -> list[PodView]:
        uids = self._asked_for.pop(selection, {})
        return [pod for uid in uids if (pod := self._world.facts.pod(uid)) is not None]


def _selection(request: DeviceRequest, pod: PodView) -> Selection | None:
    """The selectors to evaluate for a pod's request; None where it has none."""
    digests = [digest_of(expressions) for expressions in evaluable(request.criteria.selectors)]
    if not digests:
        return None
    return Selection(request.criteria, request.drivers, pod.too_slow.intersection(digests))
