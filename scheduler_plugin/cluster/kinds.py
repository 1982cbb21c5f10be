"""The kinds of objects in the world: what is kept of each object, and where it is entered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from driver.shapes.instances import InstanceObject
from kube.calls.api import ApiClient
from kube.kinds import (
    CLAIMS,
    CLASSES,
    CONFIGURATIONS,
    INSTANCES,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    SLICES,
    TAINT_RULES,
)
from kube.objects import JsonObject
from kube.resources import Resource
from kube.shapes.claims import Claim
from kube.shapes.nodes import Node
from kube.shapes.pods import Pod
from kube.shapes.reading import read_as
from kube.shapes.slices import Slice
from kube.shapes.taint_rules import DeviceTaintRule
from kube.stores.api import Store, WatchSettings
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    NamespaceChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
    WorldChange,
)
from scheduler_plugin.cluster.feeds import Feed, Kind
from scheduler_plugin.cluster.tables import Tables
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import (
    ClassView,
    InstanceView,
    class_view,
    instance_view,
)
from scheduler_plugin.objects.names import Queue
from scheduler_plugin.objects.nodes import NodeView, node_view
from scheduler_plugin.objects.pod_objects import namespace_view, pod_group_view
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from scheduler_plugin.objects.projections import (
    ClaimVersion,
    StoredPod,
    project_claim,
    project_configuration,
)
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.reclaiming.placement.published_slices import PublishedSlice, published_slice
from scheduler_plugin.shapes import QueueFields

T = TypeVar("T")

Projection: TypeAlias = Callable[[Any], T | None]


class Kinds:
    """All kinds; each is watched while its `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        watch: WatchSettings,
        tables: Tables,
        changed: Callable[[WorldChange], None],
        pod_groups: Sequence[Resource],
    ) -> None:
        """`changed` is called after a change is entered into the world."""
        self._client = client
        self._watch = watch
        self._tables = tables
        self._world = world = tables.world
        self._settings = world.facts.settings
        self._changed = changed
        self.claims = self._claims()
        self.pods = self._pods()
        self.queues = self._queues()
        self._instances = self._instances_kind()
        # This changes when a kind of PodGroups is found to be served.
        world.serve_groups(served=False)
        self._groups = [self._group(resource) for resource in pod_groups]
        self._others: list[Kind[Any]] = [
            self._classes(),
            self._slices(),
            self._configurations(),
            self._namespaces(),
            *map(self._taint_rules, TAINT_RULES),
        ]
        if tables.nodes is not None:
            self._others.append(self._nodes())

    def __iter__(self) -> Iterator[Kind[Any]]:
        """All kinds, in the order that costs the world least."""
        yield from self._others
        yield self._instances
        yield from self._groups
        yield self.queues
        yield self.claims
        yield self.pods

    def _kind(
        self,
        resource: Resource,
        project: Projection[T],
        feed: Feed[T],
        *,
        is_optional: bool = False,
        shape: type[Any] | None = None,
    ) -> Kind[T]:
        settings = replace(self._watch, shape=shape)
        store: Store[T] = Store(self._client, resource.select(), project, settings=settings)
        return Kind(self._client, resource, store, feed, is_optional=is_optional)

    def _claims(self) -> Kind[ClaimVersion]:
        def project(obj: JsonObject | Claim) -> ClaimVersion:
            return project_claim(obj, queue_label=self._settings.queue_label)

        feed: Feed[ClaimVersion] = Feed(
            put=lambda version: self._world.put_claim(version.view),
            delete=lambda version: self._world.delete_claim(version.view.uid),
            change=lambda version: ClaimChanged(version.view.uid),
            notify=self._changed,
        )
        return self._kind(CLAIMS, project, feed, is_optional=True, shape=Claim)

    def _pods(self) -> Kind[StoredPod]:
        def put(pod: StoredPod) -> bool:
            matters = self._tables.put_pod(pod)
            if isinstance(pod, PodView) and pod.claims and not self.claims.is_followed:
                self.claims.hint()
            return matters

        feed = Feed(
            put=put,
            delete=self._tables.delete_pod,
            change=lambda pod: PodChanged(pod.uid),
            notify=self._changed,
        )
        return self._kind(PODS, self._tables.project_pod, feed, shape=Pod)

    def _nodes(self) -> Kind[NodeView]:
        feed = self._other(self._tables.put_node, self._tables.delete_node)
        return self._kind(NODES, node_view, feed, shape=Node)

    def _queues(self) -> Kind[Queue]:
        def put(queue: Queue) -> bool:
            before = self._world.facts.tree.get(queue.name)
            self._world.put_queue(queue)
            # `has_finalizer` changes no verdict.
            return before is None or replace(before, has_finalizer=queue.has_finalizer) != queue

        feed = Feed(
            put=put,
            delete=lambda queue: self._world.delete_queue(queue.name),
            change=lambda queue: QueueChanged(queue.name),
            notify=self._changed,
        )
        return self._kind(QUEUES, parse_queue, feed, shape=QueueFields)

    def _namespaces(self) -> Kind[NamespaceView]:
        feed = Feed(
            put=self._world.put_namespace,
            delete=lambda namespace: self._world.delete_namespace(namespace.name),
            change=lambda namespace: NamespaceChanged(namespace.name),
            notify=self._changed,
        )
        return self._kind(NAMESPACES, namespace_view, feed)

    def _classes(self) -> Kind[ClassView]:
        feed = self._other(
            self._world.put_class, lambda found: self._world.delete_class(found.name)
        )
        return self._kind(CLASSES, class_view, feed, is_optional=True)

    def _slices(self) -> Kind[PublishedSlice]:
        feed = self._other(self._tables.put_slice, self._tables.delete_slice)
        return self._kind(SLICES, published_slice, feed, is_optional=True, shape=Slice)

    def _taint_rules(self, resource: Resource) -> Kind[DeviceTaintRule]:
        """Of one version; where both are served, each brings the same rules."""

        def project(obj: JsonObject | DeviceTaintRule) -> DeviceTaintRule:
            return read_as(DeviceTaintRule, obj)

        feed = self._other(self._tables.put_rule, self._tables.delete_rule)
        return self._kind(resource, project, feed, is_optional=True, shape=DeviceTaintRule)

    def _configurations(self) -> Kind[ResourceKey]:
        feed = self._other(self._world.put_configuration, self._world.delete_configuration)
        return self._kind(CONFIGURATIONS, project_configuration, feed, is_optional=True)

    def _instances_kind(self) -> Kind[InstanceView]:
        def delete(instance: InstanceView) -> None:
            self._world.delete_instance(instance.name)
            # Two namespaces may each have an Instance of this name.
            for other in self._instances.store:
                if other.name == instance.name:
                    self._world.put_instance(other)

        feed = self._other(self._world.put_instance, delete)
        return self._kind(INSTANCES, instance_view, feed, is_optional=True, shape=InstanceObject)

    def _group(self, resource: Resource) -> Kind[PodGroupView]:
        def project(obj: JsonObject) -> PodGroupView:
            return pod_group_view(obj, self._settings, kind.resource.api_version)

        def delete(group: PodGroupView) -> None:
            self._world.delete_group(group.namespace, group.name)
            # Two API groups may each have a PodGroup of this name.
            for kind in self._groups:
                other = kind.store.get(group.name, group.namespace)
                if other is not None:
                    self._world.put_group(other)

        def served() -> None:
            self._world.serve_groups(served=True)
            self._changed(OtherChanged())

        feed = Feed(
            put=self._world.put_group,
            delete=delete,
            change=lambda group: GroupChanged(group.namespace, group.name),
            notify=self._changed,
        )
        kind = self._kind(resource, project, feed, is_optional=True)
        kind.served = served
        return kind

    def _other(
        self, put: Callable[[T], bool | None], delete: Callable[[T], bool | None]
    ) -> Feed[T]:
        return Feed(put=put, delete=delete, change=lambda _: OtherChanged(), notify=self._changed)
