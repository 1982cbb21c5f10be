"""Connects the parts of the elected driver.

Configurations ──► cluster_configurations ──► DeviceClasses, status of each Configuration
Nodes, Instances ──► cluster_instances ──► slots of lost nodes, Instances that no node sees
              ├────► cluster_pools ──────► ResourceSlices of devices that several nodes see
              └────► apiserver_brokers ──► Pods, Jobs and Services for each Instance
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from driver.api import Configuration, ConfigurationName
from driver.brokers.apiserver_brokers import Brokers
from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.brokers.stored import Stored
from driver.configurations.apiserver_classes import probe_extended_resources
from driver.configurations.configurations import Verdict, concerns_devices, holders
from driver.instances.cluster_instances import ClusterInstances, LostNodeSettings
from driver.instances.inventory import in_force
from driver.instances.slots.slots import InstanceSlots
from driver.offer_paths import OfferPath, taken_path
from driver.plumbing.apiserver import until_done
from driver.publishing.apiserver_slices import probe_features
from driver.publishing.apiserver_upgrades import Upgrades
from driver.publishing.cluster_pools import (
    ClusterPools,
    SharedInputs,
    SharedOffer,
)
from driver.running.settings import SharedSettings
from driver.running.shared.cluster_configurations import (
    ClassSettings,
    ClusterConfigurations,
    Judged,
    judged,
)
from kube.calls.api import ApiClient, keep_warm
from kube.events.api import Event
from kube.kinds import CONFIGURATIONS
from kube.stores.api import Change, Modified, Store

logger = logging.getLogger(__name__)


def _requeue_if_concerned(change: Change[Judged], pools: ClusterPools) -> None:
    """Publish again, unless only the status of a Configuration changed."""
    if isinstance(change, Modified) and not concerns_devices(
        change.old.verdict, change.new.verdict
    ):
        return
    pools.requeue()


class SharedCluster:
    """The parts of the elected driver."""

    def __init__(
        self,
        client: ApiClient,
        settings: SharedSettings,
        record: Callable[[Event], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Create; `record` records an Event without blocking."""
        self._client = client
        self._settings = settings
        self._tasks = tasks
        self._configurations: Store[Judged] = Store(
            client,
            CONFIGURATIONS.select(),
            partial(judged, unique_devices_default=settings.unique_devices_default == "true"),
        )
        lost_nodes = LostNodeSettings(settings.lost_node_grace, record)
        self._instances = ClusterInstances(client, self._in_force, lost_nodes)
        self._workloads: BrokerWorkloads | None = None

    def slots(self) -> Iterable[InstanceSlots]:
        """The slots of all known Instances."""
        return (observed.slots for observed in self._instances.store)

    def broker_pods(self) -> Iterable[Stored]:
        """All broker Pods that are known."""
        return self._workloads.pods() if self._workloads else ()

    async def run(self) -> None:
        """Write until cancelled; failures are logged and retried without a limit.

        Raises:
            FeaturesChangedError: The API server was upgraded, and keeps other fields.
        """
        upgrades = Upgrades(self._client, self._probe)
        extended_resources, offer = found = await upgrades.found()
        self._tasks.create_task(keep_warm(self._client, upgrades.read))
        self._tasks.create_task(upgrades.watch(found))
        self._tasks.create_task(self._configurations.run())
        await self._configurations.synced.wait()
        self._configurations.subscribe(lambda _: self._instances.requeue())
        self._publish_shared(offer)
        self._tasks.create_task(self._instances.run())
        settings = ClassSettings(
            extended_resources=extended_resources,
            keeps_slots=offer is None or not offer.is_dra or offer.features.consumable_capacity,
            of_instances=self._settings.instance_classes,
        )
        await self._write_configurations(settings)

    async def _write_configurations(self, settings: ClassSettings) -> None:
        """Write classes and status, and make brokers, until cancelled."""
        namespaces = self._settings.broker_namespaces
        self._workloads = workloads = BrokerWorkloads(
            self._client,
            namespaces,
            self._settings.broker_account,
            has_claims=settings.extended_resources is not None,
        )
        written = ClusterConfigurations(
            self._client,
            self._configurations,
            self._instances,
            settings,
            lambda namespace, name, stored: brokers.condition(namespace, name, stored),
        )
        brokers = Brokers(self._client, self._instances, workloads, namespaces, written.requeue)
        self._tasks.create_task(brokers.run())
        await written.run()

    async def _probe(self) -> tuple[bool | None, SharedOffer | None]:
        extended_resources = await self._probe_classes()
        return extended_resources, await self._probe_slices(extended_resources)

    async def _probe_classes(self) -> bool | None:
        kept = await until_done(
            lambda: probe_extended_resources(self._client),
            name="asking the API server for its features",
        )
        if kept is None:
            logger.warning(
                "the API server serves no DeviceClasses: only the status of Configurations is"
                " written"
            )
        return kept

    async def _probe_slices(self, extended_resources: bool | None) -> SharedOffer | None:
        features = await until_done(
            lambda: probe_features(self._client, None),
            name="asking the API server for its features",
        )
        path = taken_path(
            self._settings.path,
            slices_are_served=features is not None,
            extended_resources=bool(extended_resources),
        )
        logger.info("shared devices are offered path=%s", path)
        if features is None:
            return None
        device_nodes = features.device_nodes and not self._settings.group_by_nodes
        return SharedOffer(replace(features, device_nodes=device_nodes), path is OfferPath.DRA)

    def _publish_shared(self, offer: SharedOffer | None) -> None:
        """Start the pools of shared devices; the Configurations must be known."""
        is_dra = offer is not None and offer.is_dra
        self._instances.path = OfferPath.DRA if is_dra else OfferPath.DEVICE_PLUGIN
        if offer is None:
            self._instances.claimed = frozenset
            return
        inputs = SharedInputs(self._held, self._instances.store, self._instances.nodes)
        pools = ClusterPools(self._client, offer, inputs, self._tasks, self._instances.requeue)
        self._instances.claimed = lambda: pools.claimed
        self._configurations.subscribe(lambda change: _requeue_if_concerned(change, pools))
        self._tasks.create_task(pools.run())

    def _held(self) -> Mapping[ConfigurationName, Verdict]:
        return holders(j.verdict for j in self._configurations)

    def _in_force(self) -> Mapping[ConfigurationName, Configuration]:
        return {c.name: c for c in in_force(j.verdict for j in self._configurations)}
