"""Where devices are, for each cycle: the stock, once it is known what CEL says of its devices.

A pod is decided about when its selectors were evaluated for all devices once. Later changes of
devices are evaluated beside the decisions: until then a device may fit.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from binder.reclaiming.answers_processes import SelectorEvaluator
from binder.reclaiming.apiserver_holds import Surroundings
from kube.api import (
    CelProcess,
    Done,
    Failed,
    NotEvaluatedError,
    Reconciler,
    Result,
    digest_of,
)
from scheduler_plugin.api import (
    Ask,
    Away,
    DeviceRequest,
    LeftOut,
    MissedNodes,
    NodeSupply,
    PodUid,
    PodView,
    Stock,
    Supply,
    evaluable,
    seekers_of,
)

MOST_TOLD = 100
"""How many pods are told at one time that a selector of theirs takes too long."""


class Selection(NamedTuple):
    """What is to be evaluated.

    Attributes:
        request: What is asked of each device.
        drivers: Of these drivers; () for all.
        reported: Digests of what takes too long, as the pods' own conditions say that ask for it:
            what one pod's says is true of no other.
    """

    request: DeviceRequest
    drivers: tuple[str, ...]
    reported: frozenset[str]


class StockSupplies:
    """Has selectors evaluated while `run` runs."""

    def __init__(self, around: Surroundings, stock: Stock, missed: MissedNodes) -> None:
        self._writes = around.writes
        self._world = around.world
        self._clock = around.clock
        self._stock = stock
        self._missed = missed
        self._cel = CelProcess()
        self._evaluator = SelectorEvaluator(self._cel, stock.devices, stock.answers)
        # As of which change of the devices each was evaluated, and for which pods it is asked.
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
        """Why it is not known yet which devices would do for a pod; None where it is.

        "" where it is being found out.
        """
        seekers = seekers_of([pod], self._world)
        asks = seekers[0].asks if not isinstance(seekers, str) else ()
        selections = [found for ask in asks if (found := _selection(ask, pod)) is not None]
        missing = [found for found in selections if not self._is_known(found, pod)]
        return self._problem if missing else None

    def supply(self, away: Away) -> Supply:
        """Nodes and devices for one cycle."""
        left_out = LeftOut(self._world, self._missed, self._clock())
        return NodeSupply(self._world, self._stock, away, left_out)

    def _is_known(self, selection: Selection, pod: PodView) -> bool:
        known = self._known.get(selection)
        if known != self._stock.devices.changes:
            self._asked_for.setdefault(selection, {})[pod.uid] = None
            self._queue.add(selection)
        return known is not None

    async def _evaluate(self, selection: Selection) -> Result:
        request, drivers, reported = selection
        changes, pods = self._stock.devices.changes, self._askers(selection)
        devices = self._stock.devices.of_drivers(drivers)
        try:
            found = await self._evaluator.evaluate([request], devices, reported)
        except NotEvaluatedError as error:
            self._problem = f"What would serve a pod cannot be evaluated: {error}"
            return Failed(error)
        self._problem = ""
        self._known[selection] = changes
        for pod in pods[:MOST_TOLD]:
            if not found[request] <= pod.too_slow:
                await self._writes.tell_slow(pod, sorted(found[request]))
        return Done()

    def _askers(self, selection: Selection) -> list[PodView]:
        uids = self._asked_for.pop(selection, {})
        return [pod for uid in uids if (pod := self._world.facts.pod(uid)) is not None]


def _selection(ask: Ask, pod: PodView) -> Selection | None:
    """What is to be evaluated for what a pod asks for; None for nothing."""
    digests = [digest_of(expressions) for expressions in evaluable(ask.request)]
    if not digests:
        return None
    return Selection(ask.request, ask.drivers, pod.too_slow.intersection(digests))
