"""The controller of brokers, in the elected driver: carries out the plans of each Instance.

    Configurations, Instances ─┐
    Pods, Jobs, Services ──────┴─► a key for each Instance and each Configuration ──► writes
                                     └─► another key for each that lacks brokers ──► creations

Brokers are made at a bounded rate, and Configurations alternate. So those of a thousand devices
delay neither those of another Configuration for long, nor what is to be deleted. The API server's
refusal of one holds back all of its Configuration, for longer each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

from driver.api import ConfigurationName
from driver.brokers.apiserver_akri import AkriController
from driver.brokers.apiserver_configurations import WantedBrokers
from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.brokers.apiserver_writes import BrokerWrites
from driver.brokers.devices import Device
from driver.brokers.plans import NOTHING, Plan, plan_configuration, plan_device
from driver.brokers.states import (
    AKRI_RUNS,
    Blocked,
    brokers_condition,
    invalid,
    not_allowed,
    too_many,
)
from driver.brokers.stored import Stored
from driver.brokers.workloads import Wanted, Workloads
from driver.configurations.conditions import Condition
from driver.instances.cluster_instances import ClusterInstances
from driver.instances.unseen_instances import ObservedInstance
from driver.names import label_value
from driver.plumbing.apiserver_reconcilers import keyed_reconciler
from kube.calls.api import ApiClient
from kube.kinds import PODS
from kube.reconciling.api import Done, Result
from kube.stores.api import Change, Deleted

WORKERS = 4

GATHER_SECONDS = 0.3
"""How long changes are gathered before the Service and the condition of a Configuration follow."""


class Key(NamedTuple):
    """What is reconciled. The name is the value of its label, which may be a part of the name."""

    kind: Literal["Instance", "Configuration"]
    namespace: str
    name: str


class Creation(NamedTuple):
    """An Instance that lacks brokers."""

    namespace: str
    configuration: ConfigurationName
    instance: str

    @property
    def group(self) -> tuple[str, ConfigurationName]:
        """Creations of a group come one after the other, and groups alternate."""
        return self.namespace, self.configuration


class Brokers:
    """Makes and removes brokers, Jobs and Services, as Configurations say."""

    def __init__(
        self,
        client: ApiClient,
        instances: ClusterInstances,
        stored: BrokerWorkloads,
        namespaces: frozenset[str],
        changed: Callable[[], None],
    ) -> None:
        """Create; the caller runs the store of Instances.

        Args:
            client: The driver's own.
            instances: All Instances.
            stored: All that is made for them.
            namespaces: The namespaces that may have brokers; `*` is all of them.
            changed: Called when a condition may have changed.
        """
        self._stored = stored
        self._namespaces = namespaces
        self._changed = changed
        self._wanted = WantedBrokers(client, instances)
        self._writes = BrokerWrites(client, stored)
        self._akri = AkriController(client, is_watched=bool(namespaces))
        self._is_known = False
        # Configurations with Instances that lack brokers, since there would be too many.
        self._held_back: set[tuple[str, ConfigurationName]] = set()
        self._queue = keyed_reconciler("planning brokers", self._reconcile, workers=WORKERS)
        self._creations = keyed_reconciler("making brokers", self._make, workers=WORKERS)
        self._creations.rotate(lambda creation: creation.group)

    async def run(self) -> None:
        """Write until cancelled; failures are logged and retried without a limit."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._wanted.configurations.run())
            tasks.create_task(self._stored.run(self._stored_changed))
            tasks.create_task(self._akri.run())
            await self._wanted.synced()
            await self._stored.synced.wait()
            await self._akri.synced.wait()
            self._wanted.configurations.subscribe(self._configuration_changed)
            self._wanted.instances.store.subscribe(self._instance_changed)
            self._akri.subscribe(self._akri_changed)
            self._is_known = True
            tasks.create_task(self._creations.run())
            await self._queue.run()

    def condition(
        self, namespace: str, name: ConfigurationName, stored: Condition | None
    ) -> Condition | None:
        """The condition of a Configuration; None if it wants no brokers.

        Before all is known it is the stored one, which another process may have written.
        """
        if not self._is_known:
            return stored
        found = self._wanted.configurations.get(name, namespace)
        if found is None:
            return None
        if blocked := self._blocked(found):
            return blocked.condition
        if found.workloads is None:
            return None
        devices = self._wanted.count(namespace, name)
        made = self._stored.of_configuration(namespace, label_value(name))
        refusals = self._writes.refusals(namespace, name, partial(self._exists, namespace))
        return brokers_condition(found.workloads, devices, made, refusals)

    def _exists(self, namespace: str, instance: str) -> bool:
        return self._wanted.device(namespace, label_value(instance)) is not None

    def _blocked(self, found: Wanted) -> Blocked | None:
        """Why nothing is made for a Configuration; None if it may be, or it wants nothing."""
        if found.problems:
            return invalid(found.problems)
        if found.workloads is None:
            return None
        akri = AKRI_RUNS if self._akri.runs else None
        return not_allowed(found.namespace, self._namespaces) or akri

    def _configuration_changed(self, change: Change[Wanted]) -> None:
        namespace, name = change.key.namespace, ConfigurationName(change.key.name)
        self._writes.forget(namespace, name)
        self._queue.add(Key("Configuration", namespace, label_value(name)))
        labels = self._wanted.labels(namespace, name)
        self._queue.add_all(Key("Instance", namespace, label) for label in labels)

    def _instance_changed(self, change: Change[ObservedInstance]) -> None:
        self._wanted.note(change)
        observed = change.old if isinstance(change, Deleted) else change.new
        namespace = change.key.namespace
        self._queue.add(Key("Instance", namespace, label_value(change.key.name)))
        self._gather(namespace, label_value(observed.slots.configuration))

    def _stored_changed(self, change: Change[Stored]) -> None:
        found = change.old if isinstance(change, Deleted) else change.new
        if found.instance:
            self._queue.add(Key("Instance", found.namespace, found.instance))
        if found.configuration:
            self._gather(found.namespace, found.configuration)

    def _akri_changed(self) -> None:
        self._queue.add_all(self._keys())

    def _gather(self, namespace: str, label: str) -> None:
        self._queue.add_after(Key("Configuration", namespace, label), GATHER_SECONDS)

    async def _reconcile(self, key: Key) -> Result:
        if key.kind == "Configuration":
            return await self._reconcile_configuration(key)
        return await self._reconcile_instance(key)

    def _keys(self) -> Iterator[Key]:
        for found in self._wanted.configurations:
            yield Key("Configuration", found.namespace, label_value(found.name))
            labels = self._wanted.labels(found.namespace, ConfigurationName(found.name))
            yield from (Key("Instance", found.namespace, label) for label in labels)

    async def _make(self, creation: Creation) -> Result:
        key = Key("Instance", creation.namespace, creation.instance)
        return await self._reconcile_instance(key, may_create=True)

    async def _reconcile_instance(self, key: Key, *, may_create: bool = False) -> Result:
        device = self._wanted.device(key.namespace, key.name)
        found = self._stored.of_instance(key.namespace, key.name)
        if device is None:
            await self._writes.delete_all(Plan.deleting(found).deletes)
            return Done()
        configuration = self._wanted.configurations.get(device.configuration, device.namespace)
        if configuration is None or self._blocked(configuration):
            return Done()
        plan = self._plan(configuration.workloads, device, found)
        if plan != NOTHING:  # It may be refused, and the condition says so.
            self._gather(key.namespace, label_value(device.configuration))
        if plan.creates and not may_create:
            self._creations.add(Creation(key.namespace, device.configuration, key.name))
            return Done()
        return await self._writes.carry_out(plan, (key.namespace, device.configuration), device)

    def _plan(self, workloads: Workloads | None, device: Device, found: tuple[Stored, ...]) -> Plan:
        waits = partial(self._writes.waits, device.namespace)
        planned = partial(plan_device, workloads, device, found, waits)
        plan = planned()
        if workloads is None or not plan.creates:
            return plan
        configuration = device.namespace, device.configuration
        if not too_many(workloads, self._wanted.count(*configuration)):
            return plan
        self._held_back.add(configuration)
        return planned(may_create=False)

    async def _reconcile_configuration(self, key: Key) -> Result:
        self._changed()
        configuration = self._wanted.by_label(key.namespace, key.name)
        found = self._stored.of_configuration(key.namespace, key.name)
        services = tuple(each for each in found if not each.instance)
        if configuration is None or self._blocked(configuration):
            return Done()  # What belonged to one that is deleted goes with it.
        pods = (each for each in found if each.resource == PODS)
        self._go_on(configuration)
        plan = plan_configuration(configuration.workloads, services, pods)
        return await self._writes.carry_out(plan, (key.namespace, configuration.name))

    def _go_on(self, configuration: Wanted) -> None:
        """Plan all Instances of a Configuration again once it no longer wants too many brokers."""
        namespace, name = key = configuration.namespace, ConfigurationName(configuration.name)
        workloads = configuration.workloads
        if key in self._held_back and not (
            workloads and too_many(workloads, self._wanted.count(*key))
        ):
            self._held_back.discard(key)
            labels = self._wanted.labels(namespace, name)
            self._queue.add_all(Key("Instance", namespace, label) for label in labels)
