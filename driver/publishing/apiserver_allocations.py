"""The API server's ResourceClaims: which devices of a publisher's pools some claim has.

A watch of all claims of the cluster is expensive. The driver watches them only while a device that
is absent is still published, to learn when that device may be removed.

A watch lags behind the API server. A claim may get a device just before the device is tainted, and
that allocation must be known before the device is removed. So after the write of a taint the
allocations count as unknown until the watch has caught up with that write.

When a switch fails, all nodes lose devices at the same moment. Each node waits for a random time
before it lists the claims of the cluster. If the devices are back by then, it does not list them.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from driver.api import DRIVER_NAME, DeviceName
from driver.plumbing.apiserver import until_done
from kube.calls.api import ApiClient
from kube.kinds import CLAIMS
from kube.objects import JsonObject
from kube.shapes.claims import Claim
from kube.shapes.reading import read_as
from kube.stores.api import Store, WatchSettings

CATCH_UP_SECONDS = 30.0

GATHER_SECONDS = 1.0
"""How long taints are gathered into one list of the claims. Without it a device that comes and goes
would cost one list each time."""

NODE_SPREAD_SECONDS = 10.0
"""Over how long the nodes of a cluster spread their lists. The removal of an absent device is
delayed by this time at most."""

_Device = tuple[str, DeviceName]
"""Pool and name."""


class AllocationWatch:
    """Watches the claims of the cluster between `turn_on` and `turn_off`."""

    def __init__(
        self,
        client: ApiClient,
        is_ours: Callable[[str], bool],
        tasks: asyncio.TaskGroup,
        on_change: Callable[[], None],
        *,
        spread_seconds: float = 0.0,
    ) -> None:
        """Create.

        Args:
            client: Client of the API server.
            is_ours: Whether the publisher owns the pool of this name.
            tasks: Task group that the watch runs in.
            on_change: Called when the allocations may have changed.
            spread_seconds: Longest random wait before the first list, in seconds.
        """
        self._client = client
        self._is_ours = is_ours
        self._tasks = tasks
        self._on_change = on_change
        self._store: Store[frozenset[_Device]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._is_gathering = False
        self._spread_seconds = spread_seconds

    def allocated(self) -> Mapping[str, frozenset[DeviceName]] | None:
        """The allocated devices by pool; None while they are not known."""
        if self._store is None or self._renewal is not None or not self._store.synced.is_set():
            return None
        pools: dict[str, set[DeviceName]] = defaultdict(set)
        for devices in self._store:
            for pool, device in devices:
                pools[pool].add(device)
        return {pool: frozenset(devices) for pool, devices in pools.items()}

    def allocated_in(self, pool: str) -> frozenset[DeviceName] | None:
        """The allocated devices of one pool; None while they are not known."""
        allocated = self.allocated()
        return None if allocated is None else allocated.get(pool, frozenset())

    def turn_on(self) -> None:
        """Start the watch. A second call does nothing."""
        if self._task is None:
            settings = WatchSettings(shape=Claim)
            self._store = Store(self._client, CLAIMS.select(), self._devices, settings=settings)
            self._task = self._tasks.create_task(self._run(self._store), name="watch allocations")

    def renew(self) -> None:
        """Watch, and forget the allocations until the watch has caught up with this moment."""
        if self._store is None:
            self.turn_on()
            return
        if self._renewal is not None:
            if self._is_gathering:
                return  # The renewal that waits reads a later moment than this one.
            self._renewal.cancel()
        self._is_gathering = True
        self._renewal = self._tasks.create_task(self._renew(self._store), name="renew allocations")

    def turn_off(self) -> None:
        """Stop the watch and forget the allocations. A second call does nothing."""
        for task in (self._task, self._renewal):
            if task is not None:
                task.cancel()
        self._task = self._renewal = self._store = None
        self._is_gathering = False

    async def _run(self, store: Store[frozenset[_Device]]) -> None:
        await asyncio.sleep(self._own_time())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.run())
            await store.synced.wait()
            store.subscribe(lambda _: self._on_change())
            self._on_change()

    async def _renew(self, store: Store[frozenset[_Device]]) -> None:
        await asyncio.sleep(GATHER_SECONDS + self._own_time())
        self._is_gathering = False
        catch_up = partial(store.catch_up, CATCH_UP_SECONDS)
        while not await until_done(catch_up, name="asking what claims have"):
            pass
        self._renewal = None
        self._on_change()

    def _own_time(self) -> float:
        return random.uniform(0.0, self._spread_seconds)

    def _devices(self, found: JsonObject | Claim) -> frozenset[_Device] | None:
        """The devices of ours that a claim has; None for none, so that the claim is not stored."""
        ours = frozenset(
            (result.pool or "", DeviceName(result.device or ""))
            for result in read_as(Claim, found).results
            if result.driver == DRIVER_NAME and self._is_ours(result.pool or "")
        )
        return ours or None
