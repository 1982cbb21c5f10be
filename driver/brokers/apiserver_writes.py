"""Carries out plans, and holds back what is made again and again, or is refused."""

from __future__ import annotations

import asyncio
import random

from driver.brokers.apiserver_workloads import FIELD_MANAGER, BrokerWorkloads
from driver.brokers.devices import Device, ran_patch
from driver.brokers.plans import Plan
from driver.brokers.workloads import Workloads
from kube.backoff import Backoff, no_jitter
from kube.calls.api import (
    ApiClient,
    NotFoundError,
    PermanentError,
    WriteOptions,
)
from kube.kinds import INSTANCES
from kube.reconciling.api import After, Done, KeyedBackoff, Result

CREATE_SECONDS = 0.2
"""How long a worker pauses after an object that it made."""

REMADE = Backoff(first_seconds=1.0, cap_seconds=300.0)
"""How long a broker waits that is made again and again."""

REFUSED = Backoff(first_seconds=1.0, cap_seconds=60.0)
"""How long all brokers of a Configuration wait after the API server refused one."""


class BrokerWrites:
    """Writes what plans say, at a bounded rate."""

    def __init__(self, client: ApiClient, stored: BrokerWorkloads) -> None:
        """Create; `client` is the driver's own, for Instances."""
        self._client = client
        self._stored = stored
        self._remade: KeyedBackoff[tuple[str, str]] = KeyedBackoff(REMADE, no_jitter)
        self._refused: KeyedBackoff[tuple[str, str]] = KeyedBackoff(REFUSED, random.random)
        self._refusals: dict[tuple[str, str], dict[str, str]] = {}

    def waits(self, namespace: str, name: str) -> float:
        """How many seconds a broker still waits before it is made anew."""
        return self._remade.left((namespace, name), _now())

    def refusals(self, namespace: str, configuration: str) -> tuple[str, ...]:
        """What the API server said to writes for a Configuration that failed last."""
        found = self._refusals.get((namespace, configuration), {})
        return tuple(dict.fromkeys(found.values()))

    def forget(self, namespace: str, configuration: str) -> None:
        """Try again at once what was refused: the Configuration has changed."""
        self._refused.forget((namespace, configuration))
        self._refusals.pop((namespace, configuration), None)

    async def carry_out(self, plan: Plan, of: Workloads | None, device: Device | None) -> Result:
        """Write all of a plan. Raises ApiError where another attempt may succeed soon."""
        await asyncio.gather(*map(self._stored.delete, plan.deletes))
        refused_seconds = await self._make(plan, of, device.name if device else "") if of else 0.0
        if refused_seconds:
            return After(refused_seconds)
        if plan.ran is not None and device:
            await self._remember(plan.ran, device)
        pause = CREATE_SECONDS * len(plan.creates)
        if plan.recheck_seconds is not None:
            return After(plan.recheck_seconds, pause)
        return Done(pause)

    async def _make(self, plan: Plan, of: Workloads, name: str) -> float:
        """Create and apply; returns the seconds until another attempt if one was refused."""
        key = of.namespace, of.configuration
        if plan.makes and (left := self._refused.left(key, _now())):
            return left
        try:
            await self._make_all(plan, of)
        except PermanentError as error:
            self._refusals.setdefault(key, {})[name] = str(error)
            return max(self._refused.failed(key, _now()), 1.0)
        if plan.makes:
            self._refused.forget(key)
        self._refusals.get(key, {}).pop(name, None)
        return 0.0

    async def _make_all(self, plan: Plan, of: Workloads) -> None:
        for made in plan.creates:
            await self._stored.create(made)
            self._remade.failed((of.namespace, made.name), _now())
        for made in plan.applies:
            await self._stored.apply(made)

    async def _remember(self, revision: str, device: Device) -> None:
        path = INSTANCES.at(device.name, device.namespace)
        try:
            await self._client.merge_patch(
                path,
                ran_patch(device, revision),
                options=WriteOptions(field_manager=FIELD_MANAGER),
            )
        except NotFoundError:
            return  # The device has gone, and its Job goes with it.


def _now() -> float:
    return asyncio.get_running_loop().time()
