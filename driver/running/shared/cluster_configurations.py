"""Writes the DeviceClass and the status of each Configuration, in the elected driver.

Configurations, DeviceClasses ──► plan_classes ──► DeviceClasses, by a setting of Instances, too
                              └─► conditions ───► status of each Configuration
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from driver.api import ConfigurationName, InstanceName
from driver.brokers.states import BROKERS_READY
from driver.configurations.apiserver_classes import write_classes
from driver.configurations.classes import (
    StoredClass,
    WantedClasses,
    plan_classes,
    stored_class,
    taken,
    wanted_classes,
)
from driver.configurations.conditions import (
    Condition,
    conditions,
    status_body,
    stored_condition,
)
from driver.configurations.configurations import Verdict, holders, judge
from driver.discovery.handlers import HANDLER_NAMES, check_details
from driver.handlers.status_entries import without_lost_nodes
from driver.instances.cluster_instances import BY_CONFIGURATION, GATHER_SECONDS, ClusterInstances
from driver.instances.unseen_instances import ObservedInstance
from driver.models import configuration_problems
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from kube.calls.api import ApiClient, ConflictError, NotFoundError, Preconditions, WriteOptions
from kube.kinds import CLASSES, CONFIGURATIONS
from kube.objects import JsonObject
from kube.reconciling.api import Done, Result
from kube.shapes.metadata import metadata_of
from kube.stores.api import Change, Modified, Store

FIELD_MANAGER = "moorage.dev/shared"


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of validating a Configuration, and its stored status."""

    verdict: Verdict
    status: Mapping[str, Any]
    version: str


def judged(body: JsonObject, *, unique_devices_default: bool) -> Judged:
    """Parse a Configuration; the setting is the default of `spec.uniqueDevices`."""
    verdict = judge(
        body,
        check_details,
        unique_devices_default=unique_devices_default,
        check_shape=configuration_problems,
    )
    return Judged(verdict, body.get("status") or {}, metadata_of(body).resource_version or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSettings:
    """Settings of classes and conditions.

    Attributes:
        extended_resources: Whether the API server keeps `extendedResourceName`; None if it serves
            no DeviceClasses.
        keeps_slots: False if devices are offered through DRA and the API server drops their slots.
        of_instances: Whether each Instance has a DeviceClass of its own.
    """

    extended_resources: bool | None
    keeps_slots: bool
    of_instances: bool


class ClusterConfigurations:
    """Reconciles DeviceClasses and the status of Configurations."""

    def __init__(
        self,
        client: ApiClient,
        configurations: Store[Judged],
        instances: ClusterInstances,
        settings: ClassSettings,
        brokers_condition: Callable[[str, ConfigurationName, Condition | None], Condition | None],
    ) -> None:
        """Create; the caller runs the stores of Configurations and Instances.

        `brokers_condition` returns the condition of a Configuration's brokers, by namespace, name
        and the stored condition; the caller calls `requeue` when one may have changed.
        """
        self._client = client
        self._settings = settings
        self._brokers_condition = brokers_condition
        self._configurations = configurations
        self._instances = instances
        self._classes: Store[StoredClass] = Store(client, CLASSES.select(), stored_class)
        self._queue = whole_reconciler("publishing classes", self._reconcile)

    async def run(self) -> NoReturn:
        """Write until cancelled; failures are logged and retried without a limit."""
        async with asyncio.TaskGroup() as tasks:
            if self._settings.extended_resources is not None:
                tasks.create_task(self._classes.run())
                await self._classes.synced.wait()
            await self._configurations.synced.wait()
            self._classes.subscribe(lambda _: self._queue.add(ALL))
            self._configurations.subscribe(lambda _: self._queue.add(ALL))
            self._instances.nodes.subscribe(lambda _: self._queue.add(ALL))
            self._instances.store.subscribe(self._instance_changed)
            tasks.create_task(self._requeue_when_instances_are_known())
            await self._queue.run()

    def requeue(self) -> None:
        """Write again what depends on other parts of the process."""
        self._queue.add_after(ALL, GATHER_SECONDS)

    def _instance_changed(self, change: Change[ObservedInstance]) -> None:
        if self._settings.of_instances and not isinstance(change, Modified):
            self._queue.add_after(ALL, GATHER_SECONDS)

    async def _requeue_when_instances_are_known(self) -> None:
        """Reconcile once all Instances are known, which removes classes of deleted Instances."""
        await self._instances.store.synced.wait()
        self._queue.add(ALL)

    async def _reconcile(self) -> Result:
        found = tuple(self._configurations)
        held = holders(j.verdict for j in found)
        results = await asyncio.gather(
            self._write_classes(held),
            *(self._write_status(j, held[j.verdict.name]) for j in found),
            *(self._forget_lost_nodes(j) for j in found),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Done()

    async def _write_classes(self, held: Mapping[ConfigurationName, Verdict]) -> None:
        if self._settings.extended_resources is None:
            return
        decisions = plan_classes(self._wanted_classes(held), self._classes)
        await write_classes(self._client, decisions, FIELD_MANAGER, self._classes.note)

    async def _write_status(self, judged: Judged, holder: Verdict) -> None:
        verdict = judged.verdict
        wanted = conditions(
            verdict,
            holder,
            classes_taken=self._classes_taken(holder),
            keeps_slots=self._settings.keeps_slots,
            own_handlers=HANDLER_NAMES,
        )
        stored = stored_condition(judged.status, BROKERS_READY)
        if brokers := self._brokers_condition(verdict.namespace, verdict.name, stored):
            wanted += (brokers,)
        status = status_body(verdict, wanted, judged.status, now=datetime.now(UTC))
        if status is None:
            return
        body = {
            "apiVersion": CONFIGURATIONS.api_version,
            "kind": "Configuration",
            "metadata": {"name": verdict.name, "namespace": verdict.namespace, "uid": verdict.uid},
            "status": status,
        }
        path = CONFIGURATIONS.at(verdict.name, verdict.namespace, "status")
        options = WriteOptions(field_manager=FIELD_MANAGER)
        self._configurations.note(await self._client.apply(path, body, force=True, options=options))

    async def _forget_lost_nodes(self, judged: Judged) -> None:
        """Remove the entries of nodes that no longer exist from the status."""
        if not self._instances.nodes.synced.is_set():
            return
        nodes = frozenset(node.name for node in self._instances.nodes)
        verdict = judged.verdict
        stay = without_lost_nodes(verdict.entries, nodes)
        if stay is None:
            return
        path = CONFIGURATIONS.at(verdict.name, verdict.namespace, "status")
        with suppress(ConflictError, NotFoundError):  # The change triggers another reconciliation.
            answer = await self._client.merge_patch(
                path,
                {"status": {"nodes": stay}},
                preconditions=Preconditions(verdict.uid, judged.version),
                options=WriteOptions(field_manager=FIELD_MANAGER),
            )
            self._configurations.note(answer)

    def _wanted_classes(self, held: Mapping[ConfigurationName, Verdict]) -> WantedClasses:
        extended = bool(self._settings.extended_resources)
        accepted = [name for name, verdict in held.items() if verdict.configuration is not None]
        wanted = wanted_classes(accepted, held.keys(), extended_resources=extended)
        if not self._settings.of_instances:
            return wanted
        if not self._instances.store.synced.is_set():
            return wanted.retaining(stored.name for stored in self._classes)
        names = ((name, v.name) for v in held.values() for name in self._instances_of(v))
        return wanted.with_instances(names, extended_resources=extended)

    def _instances_of(self, holder: Verdict) -> Iterable[InstanceName]:
        observed_instances = self._instances.store.by_index(BY_CONFIGURATION, holder.name)
        return (s.slots.name for s in observed_instances if s.slots.namespace == holder.namespace)

    def _classes_taken(self, holder: Verdict) -> tuple[str, ...]:
        if self._settings.extended_resources is None:
            return ()
        of_instances = self._instances_of(holder) if self._settings.of_instances else ()
        return taken({holder.name, *of_instances}, self._classes)
