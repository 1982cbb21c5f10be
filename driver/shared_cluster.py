"""The cluster, as the elected driver sees it: one DeviceClass and one status per Configuration.

Configurations, DeviceClasses ──► plan_classes ──► DeviceClasses, by a setting of Instances, too
                              └─► conditions ───► status of each Configuration
Nodes, Instances ──► cluster_instances ──► slots of lost nodes, Instances that nobody sees
              └────► cluster_pools ──────► ResourceSlices of devices that several nodes see
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from driver.api import (
    AKRI_GROUP,
    AKRI_VERSION,
    Configuration,
    ConfigurationName,
    InstanceName,
)
from driver.apiserver import (
    CLASSES,
    CONFIGURATIONS,
    probe_extended_resources,
    probe_features,
    write_classes,
)
from driver.classes import (
    StoredClass,
    WantedClasses,
    plan_classes,
    stored_class,
    taken,
    wanted_classes,
)
from driver.cluster_instances import (
    BY_CONFIGURATION,
    GATHER_SECONDS,
    ClusterInstances,
    LostNodeSettings,
)
from driver.cluster_pools import ClusterPools, SharedOffer, SharedWorld
from driver.configurations import (
    Verdict,
    concerns_devices,
    conditions,
    holders,
    judge,
    status_body,
)
from driver.discovery.handlers import check_details
from driver.handler_reports import without_lost_nodes
from driver.inventory import in_force
from driver.offer_paths import OfferPath, taken_path
from driver.passes import Passes, until_done
from driver.slots import InstanceSlots
from driver.unseen_instances import InstanceSight
from kube.api import (
    ApiClient,
    Change,
    ConflictError,
    Modified,
    NotFoundError,
    Preconditions,
    Store,
    WriteOptions,
)

logger = logging.getLogger(__name__)

FIELD_MANAGER = "moorage.dev/shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How the cluster is served.

    Attributes:
        unique_devices_default: What `spec.uniqueDevices` means where it is absent.
        path: By which of the kubelet's contracts devices are offered.
        instance_classes: Whether each Instance has a DeviceClass of its own.
    """

    unique_devices_default: bool
    path: OfferPath
    instance_classes: bool
    lost_nodes: LostNodeSettings


@dataclass(frozen=True, slots=True)
class _Judged:
    """A Configuration, and the status it has now."""

    verdict: Verdict
    status: Mapping[str, Any]
    version: str


def _ask_if_concerned(change: Change[_Judged], pools: ClusterPools) -> None:
    """Not for what is written into a status."""
    if isinstance(change, Modified) and not concerns_devices(
        change.old.verdict, change.new.verdict
    ):
        return
    pools.ask()


class SharedCluster:
    """Keeps DeviceClasses and the status of Configurations what the Configurations ask for."""

    def __init__(
        self,
        client: ApiClient,
        settings: ClusterSettings,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._client = client
        self._settings = settings
        self._tasks = tasks
        self._passes = Passes(self._pass, name="publishing classes")
        self._extended_resources: bool | None = None
        self._keeps_slots = True
        self._configurations = Store(client, CONFIGURATIONS.select(), self._judge)
        self._classes: Store[StoredClass] = Store(client, CLASSES.select(), stored_class)
        self._instances = ClusterInstances(client, self._in_force, settings.lost_nodes)

    def slots(self) -> Iterable[InstanceSlots]:
        """All Instances, as far as they are known."""
        return (sight.slots for sight in self._instances.store)

    async def run(self) -> None:
        """Write until cancelled; failures are retried for ever, and logged."""
        self._extended_resources = await self._probe()
        offer = await self._probe_slices()
        stores: list[Store[Any]] = [self._configurations]
        if self._extended_resources is not None:
            stores.append(self._classes)
        for store in stores:
            self._tasks.create_task(store.run())
        for store in stores:
            await store.synced.wait()
            store.subscribe(lambda _: self._passes.ask())
        self._configurations.subscribe(lambda _: self._instances.ask())
        self._instances.nodes.subscribe(lambda _: self._passes.ask())
        self._instances.store.subscribe(self._instance_changed)
        self._publish_shared(offer)
        self._tasks.create_task(self._instances.run())
        await self._passes.run()

    def _instance_changed(self, change: Change[InstanceSight]) -> None:
        if self._settings.instance_classes and not isinstance(change, Modified):
            self._passes.ask_within(GATHER_SECONDS)

    async def _probe(self) -> bool | None:
        kept = await until_done(
            lambda: probe_extended_resources(self._client),
            name="asking the API server for its features",
        )
        if kept is None:
            logger.warning("no DeviceClasses here: only the status of Configurations is written")
        return kept

    async def _probe_slices(self) -> SharedOffer | None:
        features = await until_done(
            lambda: probe_features(self._client, None),
            name="asking the API server for its features",
        )
        path = taken_path(
            self._settings.path,
            slices_are_served=features is not None,
            extended_resources=bool(self._extended_resources),
        )
        logger.info("shared devices are offered path=%s", path)
        return SharedOffer(features, path is OfferPath.DRA) if features is not None else None

    def _publish_shared(self, offer: SharedOffer | None) -> None:
        """Begin to, once the Configurations are known."""
        is_dra = offer is not None and offer.is_dra
        self._keeps_slots = offer is None or not is_dra or offer.features.consumable_capacity
        self._instances.path = OfferPath.DRA if is_dra else OfferPath.DEVICE_PLUGIN
        if offer is None:
            self._instances.claimed = frozenset
            return
        world = SharedWorld(self._held, self._instances.store, self._instances.nodes)
        pools = ClusterPools(self._client, offer, world, self._instances.ask)
        self._instances.claimed = lambda: pools.claimed
        self._configurations.subscribe(lambda change: _ask_if_concerned(change, pools))
        self._tasks.create_task(pools.run())

    def _held(self) -> Mapping[ConfigurationName, Verdict]:
        return holders(j.verdict for j in self._configurations)

    def _judge(self, body: Mapping[str, Any]) -> _Judged:
        verdict = judge(
            body,
            check_details,
            unique_devices_default=self._settings.unique_devices_default,
        )
        return _Judged(verdict, body.get("status") or {}, body["metadata"]["resourceVersion"])

    def _in_force(self) -> Mapping[ConfigurationName, Configuration]:
        return {c.name: c for c in in_force(j.verdict for j in self._configurations)}

    async def _pass(self) -> None:
        judged = tuple(self._configurations)
        held = holders(j.verdict for j in judged)
        results = await asyncio.gather(
            self._write_classes(held),
            *(self._write_status(j, held[j.verdict.name]) for j in judged),
            *(self._forget_lost_nodes(j) for j in judged),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write_classes(self, held: Mapping[ConfigurationName, Verdict]) -> None:
        if self._extended_resources is None:
            return
        decisions = plan_classes(self._wanted_classes(held), self._classes)
        await write_classes(self._client, decisions, FIELD_MANAGER, self._classes.note)

    async def _write_status(self, judged: _Judged, holder: Verdict) -> None:
        verdict = judged.verdict
        wanted = conditions(
            verdict,
            holder,
            classes_taken=self._classes_taken(holder),
            keeps_slots=self._keeps_slots,
        )
        status = status_body(verdict, wanted, judged.status, now=datetime.now(UTC))
        if status is None:
            return
        body = {
            "apiVersion": f"{AKRI_GROUP}/{AKRI_VERSION}",
            "kind": "Configuration",
            "metadata": {"name": verdict.name, "namespace": verdict.namespace, "uid": verdict.uid},
            "status": status,
        }
        path = CONFIGURATIONS.at(verdict.name, verdict.namespace, "status")
        options = WriteOptions(field_manager=FIELD_MANAGER)
        self._configurations.note(await self._client.apply(path, body, force=True, options=options))

    async def _forget_lost_nodes(self, judged: _Judged) -> None:
        """Take away what nodes said of their handlers that are no more."""
        if not self._instances.nodes.synced.is_set():
            return
        nodes = frozenset(node.name for node in self._instances.nodes)
        verdict = judged.verdict
        stay = without_lost_nodes(verdict.entries, nodes)
        if stay is None:
            return
        path = CONFIGURATIONS.at(verdict.name, verdict.namespace, "status")
        with suppress(ConflictError, NotFoundError):  # It has changed, and so is looked at again.
            answer = await self._client.merge_patch(
                path,
                {"status": {"nodes": stay}},
                preconditions=Preconditions(verdict.uid, judged.version),
                options=WriteOptions(field_manager=FIELD_MANAGER),
            )
            self._configurations.note(answer)

    def _wanted_classes(self, held: Mapping[ConfigurationName, Verdict]) -> WantedClasses:
        extended = bool(self._extended_resources)
        accepted = [name for name, verdict in held.items() if verdict.configuration is not None]
        wanted = wanted_classes(accepted, held.keys(), extended_resources=extended)
        if not self._settings.instance_classes:
            return wanted
        if not self._instances.store.synced.is_set():
            return wanted.keeping(stored.name for stored in self._classes)
        names = ((name, v.name) for v in held.values() for name in self._instances_of(v))
        return wanted.with_instances(names, extended_resources=extended)

    def _instances_of(self, holder: Verdict) -> Iterable[InstanceName]:
        sights = self._instances.store.by_index(BY_CONFIGURATION, holder.name)
        return (s.slots.name for s in sights if s.slots.namespace == holder.namespace)

    def _classes_taken(self, holder: Verdict) -> tuple[str, ...]:
        if self._extended_resources is None:
            return ()
        of_instances = self._instances_of(holder) if self._settings.instance_classes else ()
        return taken({holder.name, *of_instances}, self._classes)
