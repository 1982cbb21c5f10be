"""The plugin's view of the cluster: stores follow the API server, and the world follows the stores.

    classes, slices, namespaces, PodGroups, queues, … ─┐
    claims ────────────────────────────────────────────┼─► World ──► listeners, waiters
    pods ──────────────────────────────────────────────┘
    nodes, and the requests of all pods on them ─────────► Nodes

All kinds are listed concurrently and fed in this order: a class that comes later costs the work of
its claims again, and a claim the work of its pods. From then on each change is fed as it comes, in
any order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, TypeAlias

from kube.calls.api import ApiClient, NotFoundError
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from kube.resources import Resource
from kube.stores.api import WatchSettings
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import WorldChange
from scheduler_plugin.cluster.cel_processes import LookEvaluator
from scheduler_plugin.cluster.kinds import Kinds
from scheduler_plugin.cluster.tables import Tables
from scheduler_plugin.cluster.waiters import Waiters
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import AccountingSettings
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.projections import is_relevant
from scheduler_plugin.reclaiming.placement.answers import Answers
from scheduler_plugin.reclaiming.placement.inventory import Inventory

logger = logging.getLogger(__name__)

READ_SECONDS = 2.0
"""How long a read may take while a binding waits for it."""

Listener: TypeAlias = Callable[[WorldChange], None]


class ClusterWorld:
    """A World that `run` keeps at the API server's state."""

    def __init__(
        self,
        client: ApiClient,
        settings: AccountingSettings,
        *,
        pod_groups: Sequence[Resource] = (),
        watch: WatchSettings | None = None,
        follows_nodes: bool = True,
    ) -> None:
        """Without `follows_nodes` a user without the right to list nodes may run it."""
        self.settings = settings
        self.world = World(settings)
        self.inventory = Inventory(answers=Answers(self.world.facts.catalog.selections))
        self._client = client
        nodes = self.inventory.nodes if follows_nodes else None
        tables = Tables(self.world, nodes, self.inventory.devices)
        self.kinds = Kinds(client, watch or WatchSettings(), tables, self._changed, pod_groups)
        self._unknown = list(self.kinds)
        self._listeners: tuple[Listener, ...] = ()
        self._evaluator = LookEvaluator(self.world, self._changed)
        self.waiters = Waiters()
        self._began_at = 0.0
        self._fed = asyncio.Event()

    def why_not_ready(self) -> str:
        """Why verdicts cannot be made, as a sentence; "" if they can.

        A Queue with an entry that is not understood has a ceiling that no verdict would respect.
        """
        return self.why_not_known() or self.world.facts.tree.why_misread()

    def why_not_known(self) -> str:
        """Why the objects are not known yet, as a sentence; "" if they are."""
        # Every call of kube-scheduler comes here; a kind that is known stays known.
        self._unknown = [kind for kind in self._unknown if not kind.store.synced.is_set()]
        for kind in self._unknown:
            if why := kind.why_not_ready():
                return why
        return "" if self._fed.is_set() else "The listed objects are not entered yet."

    def watch_failures(self) -> dict[str, tuple[int, str]]:
        """The list or watch failures of each kind in a row, and their cause (`ApiError.cause`).

        0 and "" while there is no failure.
        """
        found = {str(kind): kind.store.stats for kind in self.kinds if kind.is_followed}
        return {
            kind: (stats.failures_in_a_row, stats.last_cause if stats.failures_in_a_row else "")
            for kind, stats in found.items()
        }

    async def in_sync(self) -> None:
        """Wait until the world has all objects of the first lists."""
        await self._fed.wait()

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every change of the world from now on; it must return quickly."""
        self._listeners += (listener,)

    async def wait_for(
        self, condition: Callable[[], bool], seconds: float, about: Collection[str] = ()
    ) -> bool:
        """Wait until a change makes the condition true; returns False after `seconds`.

        `about` has the UIDs of the pods and claims whose changes matter; empty for any change.
        """
        return await self.waiters.wait_for(condition, seconds, about)

    def note_claim(self, obj: JsonObject) -> None:
        """Enter the answer to an own write at once; an answer older than the store is ignored."""
        self.kinds.claims.store.note(obj)

    def note_queue(self, obj: JsonObject) -> None:
        """The same for a Queue."""
        self.kinds.queues.store.note(obj)

    def note_pod(self, obj: JsonObject) -> None:
        """The same for a pod."""
        self.kinds.pods.store.note(obj)

    def read_pod(self, obj: JsonObject) -> PodView:
        """Parse a pod that a client sent; a version that the store has is not parsed again.

        Raises:
            UnreadableError: If it is not a pod.
        """
        known = self.kinds.pods.store.known(obj)
        return known if isinstance(known, PodView) else pod_view(obj, self.settings)

    async def refresh_claim(self, namespace: str, name: str) -> ClaimView | None:
        """Read a claim from the API server and enter it, or its absence, into the world.

        Returns None if the claim does not exist or cannot be parsed.

        Raises:
            ApiError: If the API server does not answer.
        """
        obj = await self._read(CLAIMS, namespace, name)
        if obj is None:
            self.world.note_gone_claim(namespace, name)
            return None
        self.kinds.claims.hint()
        self.note_claim(obj)
        found = self.kinds.claims.store.get(name, namespace)
        return found.view if found else None

    async def refresh_pod(self, namespace: str, name: str) -> PodView | None:
        """The same for a pod; a pod that does not matter here is returned, but not entered."""
        obj = await self._read(PODS, namespace, name)
        if obj is None:
            return None
        self.note_pod(obj)
        known = self.kinds.pods.store.get(name, namespace)
        if isinstance(known, PodView):
            return known
        found = pod_view(obj, self.settings)
        # A pod that matters and is not in the store was deleted during the read.
        return None if is_relevant(found, self.settings) else found

    async def _read(self, resource: Resource, namespace: str, name: str) -> JsonObject | None:
        try:
            path = resource.at(name, namespace)
            return await self._client.get(path, timeout_seconds=READ_SECONDS)
        except NotFoundError:
            return None

    async def run(self) -> NoReturn:
        """Follow the API server until cancelled; failures are logged and retried forever."""
        self._began_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._evaluator.run())
            for kind in self.kinds:
                tasks.create_task(kind.run())
            for kind in self.kinds:
                await kind.settled.wait()
                kind.feed()
            self._fed.set()
            self._evaluator.look()
            claims, pods = len(self.kinds.claims.store), len(self.kinds.pods.store)
            nodes = sum(1 for _ in self.inventory.nodes)
            logger.info("in sync claims=%d pods=%d nodes=%d", claims, pods, nodes)
        raise AssertionError("the stores run until cancelled")

    async def catch_up(self, moment: float, timeout_seconds: float) -> bool:
        """Wait until the stores are as new as a moment of the event loop's clock.

        Stores whose first list began later are new enough, without a request. Returns False after
        `timeout_seconds`.

        Raises:
            ApiError: If the API server cannot be asked.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._fed.wait()
        except TimeoutError:
            return False
        return self._began_at >= moment or await self._catch_up(timeout_seconds)

    async def _catch_up(self, timeout_seconds: float) -> bool:
        stores = [kind.store for kind in self.kinds if kind.is_followed]
        catching_up = (store.catch_up(timeout_seconds) for store in stores)
        answers = await asyncio.gather(*catching_up, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return all(answers)

    def _changed(self, change: WorldChange) -> None:
        self._evaluator.look()
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:  # A faulty listener must not keep the change from the others.
                logger.exception("listener failed change=%s", change)
        self.waiters.changed(change)
