"""Cleanup of all Instances by the elected driver: slots of lost nodes, and unseen Instances.

Nodes, Instances ──plan_lost_nodes──► releases of slots that lost nodes held, and Events
└─plan_unseen──────► Instances that no node sees are marked, then removed
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

from driver.api import (
    DRIVER_NAME,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.instances.apiserver_instances import delete_instance
from driver.instances.shared_paths import plan_paths
from driver.instances.slots.lost_nodes import (
    NOTHING_IN_USE,
    Absences,
    NodeState,
    absences,
    asked_for,
    holding_nodes,
    lost_sentence,
    node_state,
    plan_foreign_holders,
    plan_lost_nodes,
)
from driver.instances.slots.node_pods import node_pod
from driver.instances.slots.slot_writes import SlotWrite, merge_patch
from driver.instances.stored.objects import DeleteInstance
from driver.instances.unseen_instances import (
    ObservedInstance,
    PatchInstance,
    Surroundings,
    UnseenDecision,
    observed_instance,
    plan_unseen,
)
from driver.offer_paths import OfferPath
from driver.plumbing.apiserver import each, field_manager
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.shapes.instances import InstanceObject
from kube.calls.api import ApiClient, ApiError, ConflictError, NotFoundError, WriteOptions
from kube.events.api import Event, EventType, ObjectReference
from kube.kinds import INSTANCES, NODES, PODS
from kube.reconciling.api import After, Done, Result
from kube.shapes.nodes import Node
from kube.stores.api import Change, Deleted, Store, WatchSettings

logger = logging.getLogger(__name__)

_Decision = SlotWrite | UnseenDecision

BY_CONFIGURATION = "Instances by Configuration"
"""Index of `ClusterInstances.store`."""

GATHER_SECONDS = 0.3
"""How long changes are gathered into one reconciliation of all Instances."""

PODS_SECONDS = 15.0
"""How often the pods of a node that is not Ready are listed. They are not watched."""

FIELD_MANAGER = f"{DRIVER_NAME}:shared-driver"
"""Field manager of writes that are not in the name of a node. No node can have this name."""


@dataclass(frozen=True, slots=True)
class LostNodeSettings:
    """Settings for lost nodes.

    Attributes:
        grace: How long a node may be deleted or not Ready and keep its slots.
        record: Records an Event.
    """

    grace: timedelta
    record: Callable[[Event], None]


class ClusterInstances:
    """Releases slots of lost nodes and removes Instances that no node sees.

    Attributes:
        nodes: All Nodes.
        store: All Instances.
        claimed: Returns the shared Instances that claims may have, see `Surroundings`.
        path: The path by which shared Instances are offered; None while it is unknown.
    """

    def __init__(
        self,
        client: ApiClient,
        configurations: Callable[[], Mapping[ConfigurationName, Configuration]],
        settings: LostNodeSettings,
    ) -> None:
        self._client = client
        self._configurations = configurations
        self._settings = settings
        self._queue = whole_reconciler("clearing away what nodes left", self._reconcile)
        self._absences = Absences()
        self._waited_for: frozenset[NodeName] = frozenset()
        self.nodes: Store[NodeState] = Store(
            client, NODES.select(), node_state, settings=WatchSettings(shape=Node)
        )
        self.store: Store[ObservedInstance] = Store(
            client,
            INSTANCES.select(),
            observed_instance,
            indexes={BY_CONFIGURATION: lambda observed: (observed.slots.configuration,)},
            settings=WatchSettings(shape=InstanceObject),
        )
        self.claimed: Callable[[], Collection[str] | None] = lambda: None
        self.path: OfferPath | None = None

    async def run(self) -> None:
        """Write until cancelled; failures are logged and retried without a limit."""
        stores: list[Store[Any]] = [self.nodes, self.store]
        async with asyncio.TaskGroup() as tasks:
            for store in stores:
                tasks.create_task(store.run())
            for store in stores:
                await store.synced.wait()
            self.nodes.subscribe(lambda _: self.requeue())
            self.store.subscribe(self.on_instance)
            await self._queue.run()

    def on_instance(self, change: Change[ObservedInstance]) -> None:
        """Reconcile again, unless an Instance was deleted: that changes nothing for the others."""
        if not isinstance(change, Deleted):
            self.requeue()

    def requeue(self) -> None:
        """Reconcile all Instances again, after `GATHER_SECONDS`."""
        self._queue.add_after(ALL, GATHER_SECONDS)

    async def _reconcile(self) -> Result:
        now, grace = datetime.now(UTC), self._settings.grace
        observed_instances = tuple(self.store)
        mentioned = _mentioned(observed_instances)
        self._absences = absences(self.nodes, mentioned, self._absences, now=now)
        unseen = plan_unseen(
            observed_instances,
            Surroundings(
                configurations=self._configurations(),
                existing=[state.name for state in self.nodes],
                gone=self._absences.gone(grace=grace, now=now),
                claimed=self.claimed(),
            ),
            now=now,
        )
        lost = dict.fromkeys(self._absences.lost(grace=grace, now=now), NOTHING_IN_USE)
        doubtful = self._absences.doubtful(grace=grace, now=now) & _holding(observed_instances)
        lost |= await self._asked_for(doubtful)
        releases = plan_lost_nodes((observed.slots for observed in observed_instances), lost)
        strangers = plan_foreign_holders(
            (s.slots, s.label)
            for s in observed_instances
            if s.label is not None and not s.is_shared
        )
        paths = plan_paths(observed_instances, self.path, self.claimed()) if self.path else ()
        await each(_one_each((*releases, *strangers, *unseen.decisions, *paths)), self._write)
        moments = (unseen.recheck_at, self._absences.recheck_at(mentioned, grace=grace, now=now))
        seconds = [(at - now).total_seconds() for at in moments if at is not None]
        due = min([*seconds, PODS_SECONDS] if doubtful else seconds, default=None)
        return Done() if due is None else After(due)

    async def _asked_for(self, nodes: Collection[NodeName]) -> Mapping[NodeName, frozenset[str]]:
        """The resources that pods of each node may use; a node with unknown pods is left out."""
        found = {node: await self._asked_on(node) for node in sorted(nodes)}
        waiting = frozenset(node for node, asked in found.items() if asked != NOTHING_IN_USE)
        for node in sorted(waiting - self._waited_for):
            logger.info(
                "slots are kept: pods of a node that is not Ready may still run node=%s", node
            )
        self._waited_for = waiting
        return {node: asked for node, asked in found.items() if asked is not None}

    async def _asked_on(self, node: NodeName) -> frozenset[str] | None:
        try:
            pods = await self._client.list(PODS.select(field_selector=f"spec.nodeName={node}"))
        except ApiError as error:
            logger.warning("slots are kept: the node's pods are unknown node=%s: %s", node, error)
            return None
        return asked_for(map(node_pod, pods.items))

    async def _write(self, decision: _Decision) -> None:
        """Carry out a decision. If the Instance has changed, decide again."""
        try:
            match decision:
                case SlotWrite():
                    await self._release(decision)
                case PatchInstance(namespace, name, patch):
                    await self._patch(namespace, name, patch, FIELD_MANAGER)
                case DeleteInstance():
                    await delete_instance(self._client, decision)
                    logger.info("removed: no node sees it instance=%s", decision.name)
                case _:
                    assert_never(decision)
        except (ConflictError, NotFoundError) as error:
            logger.debug("the Instance has changed and is decided again: %s", error)
            self.requeue()

    async def _release(self, write: SlotWrite) -> None:
        await self._patch(
            write.namespace, write.instance, merge_patch(write), field_manager(write.node)
        )
        note = lost_sentence(write, self._absences)
        logger.info("slots released instance=%s note=%s", write.instance, note)
        regarding = ObjectReference(
            api_version=INSTANCES.api_version,
            kind="Instance",
            name=write.instance,
            namespace=write.namespace,
            uid=write.uid,
        )
        self._settings.record(
            Event(
                regarding=regarding,
                type=EventType.WARNING,
                reason="SlotsReleased",
                action="ReleaseSlots",
                note=note,
            )
        )

    async def _patch(
        self, namespace: str, name: InstanceName, patch: Mapping[str, Any], manager: str
    ) -> None:
        options = WriteOptions(field_manager=manager)
        path = INSTANCES.at(name, namespace)
        self.store.note(await self._client.merge_patch(path, patch, options=options))


def _mentioned(observed_instances: Collection[ObservedInstance]) -> frozenset[NodeName]:
    """Nodes that some Instance names, as a holder of a slot or as a node that sees the device."""
    return _holding(observed_instances).union(*(s.slots.nodes for s in observed_instances))


def _holding(observed_instances: Collection[ObservedInstance]) -> frozenset[NodeName]:
    """Nodes that hold a slot."""
    return frozenset().union(
        *(holding_nodes(s.slots) for s in observed_instances if s.slots.holders)
    )


def _one_each(decisions: Iterable[_Decision]) -> Iterable[_Decision]:
    """The first decision for each Instance. Its write triggers another reconciliation."""
    firsts: dict[tuple[str, str], _Decision] = {}
    for decision in decisions:
        firsts.setdefault(_place(decision), decision)
    return firsts.values()


def _place(decision: _Decision) -> tuple[str, str]:
    """Namespace and name of the Instance."""
    name = decision.instance if isinstance(decision, SlotWrite) else decision.name
    return decision.namespace, name
