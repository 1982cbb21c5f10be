"""Carries out plans, and holds back what is made again and again, or is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

from driver.brokers.apiserver_workloads import FIELD_MANAGER, BrokerWorkloads
from driver.brokers.devices import Device, ran_patch
from driver.brokers.plans import Plan
from driver.brokers.stored import Stored
from driver.plumbing.apiserver import each
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

LEAST_SECONDS = 1.0
"""The shortest wait after a refusal: its delay has full jitter."""


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

    def refusals(
        self, namespace: str, configuration: str, exists: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """What the API server said to writes that failed last, except for Instances that are gone.

        `exists` says whether an Instance is there, by its name.
        """
        found = self._refusals.get((namespace, configuration), {})
        texts = (text for name, text in found.items() if not name or exists(name))
        return tuple(dict.fromkeys(texts))

    def forget(self, namespace: str, configuration: str) -> None:
        """Try again at once what was refused: the Configuration has changed."""
        self._refused.forget((namespace, configuration))
        self._refusals.pop((namespace, configuration), None)

    async def carry_out(
        self, plan: Plan, key: tuple[str, str], device: Device | None = None
    ) -> Result:
        """Write all of a plan.

        Args:
            plan: What to write.
            key: Namespace and name of the Configuration.
            device: The Instance that the plan is for; None for the Configuration as a whole.

        Raises:
            ApiError: Another attempt may succeed soon.
        """
        name = device.name if device else ""
        if plan.makes and (left := self._refused.left(key, _now())):
            return After(left)
        try:
            await self._write(plan, device)
        except PermanentError as error:
            self._refusals.setdefault(key, {})[name] = str(error)
            return After(max(self._refused.failed(key, _now()), LEAST_SECONDS))
        if plan.makes:
            self._refused.forget(key)
        self._refusals.get(key, {}).pop(name, None)
        pause = CREATE_SECONDS * len(plan.creates)
        return Done(pause) if plan.recheck_seconds is None else After(plan.recheck_seconds, pause)

    async def delete_all(self, found: Iterable[Stored]) -> None:
        """Delete what was made for an Instance that is gone. Raises ApiError."""
        await each(found, self._stored.delete)

    async def _write(self, plan: Plan, device: Device | None) -> None:
        await self.delete_all(plan.deletes)
        await self._make_all(plan)
        if plan.ran is not None and device:
            await self._remember(plan.ran, device)

    async def _make_all(self, plan: Plan) -> None:
        for made in plan.creates:
            await self._stored.create(made)
            self._remade.failed((made.namespace, made.name), _now())
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
