"""Every kind of objects that the world is made of: what is kept of it, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from kube.api import (
    CLAIMS,
    CLASSES,
    CONFIGURATIONS,
    INSTANCES,
    NAMESPACES,
    PODS,
    QUEUES,
    SLICES,
    ApiClient,
    JsonObject,
    Resource,
    Store,
    WatchSettings,
)
from scheduler_plugin.accounting.world import World
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
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claim_fields import Claim
from scheduler_plugin.objects.devices.devices import (
    ClassView,
    InstanceView,
    SliceView,
    class_view,
    instance_view,
    slice_view,
)
from scheduler_plugin.objects.names import Queue
from scheduler_plugin.objects.pod_fields import Pod
from scheduler_plugin.objects.pods import (
    NamespaceView,
    PodGroupView,
    PodView,
    namespace_view,
    pod_group_view,
)
from scheduler_plugin.objects.projections import (
    ClaimVersion,
    project_claim,
    project_configuration,
    project_pod,
)
from scheduler_plugin.objects.queue_objects import parse_queue

T = TypeVar("T")

Projection: TypeAlias = Callable[[Any], T | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where objects come from, and how they are watched."""

    client: ApiClient
    watch: WatchSettings = field(default_factory=WatchSettings)

    def kind(
        self,
        resource: Resource,
        project: Projection[T],
        feed: Feed[T],
        *,
        is_optional: bool = False,
        shape: type[Any] | None = None,
    ) -> Kind[T]:
        settings = replace(self.watch, shape=shape)
        store: Store[T] = Store(self.client, resource.select(), project, settings=settings)
        return Kind(self.client, resource, store, feed, is_optional=is_optional)


class Kinds:
    """The kinds; they are followed once somebody runs them."""

    def __init__(
        self,
        source: Source,
        world: World,
        changed: Callable[[WorldChange], None],
        pod_groups: Sequence[Resource],
    ) -> None:
        """`changed` is called after the world took a change."""
        self._source = source
        self._world = world
        self._settings = world.facts.settings
        self._changed = changed
        self.claims = self._claims()
        self.pods = self._pods()
        self.queues = self._queues()
        self._instances = self._instances_kind()
        # Until one of their kinds is found to be served.
        world.serve_groups(served=False)
        self._groups = [self._group(resource) for resource in pod_groups]
        self._others: list[Kind[Any]] = [
            self._classes(),
            self._slices(),
            self._configurations(),
            self._namespaces(),
        ]

    def __iter__(self) -> Iterator[Kind[Any]]:
        """All of them, in the order in which the world takes them cheapest."""
        yield from self._others
        yield self._instances
        yield from self._groups
        yield self.queues
        yield self.claims
        yield self.pods

    def _claims(self) -> Kind[ClaimVersion]:
        def project(obj: JsonObject | Claim) -> ClaimVersion:
            return project_claim(obj, queue_label=self._settings.queue_label)

        def put(version: ClaimVersion) -> None:
            self._world.put_claim(version.view)
            self._changed(ClaimChanged(version.view.uid))

        def delete(version: ClaimVersion) -> None:
            self._world.delete_claim(version.view.uid)
            self._changed(ClaimChanged(version.view.uid))

        feed = Feed(put=put, delete=delete)
        return self._source.kind(CLAIMS, project, feed, is_optional=True, shape=Claim)

    def _pods(self) -> Kind[PodView]:
        def put(pod: PodView) -> None:
            self._world.put_pod(pod)
            self._changed(PodChanged(pod.uid))
            if pod.claims and not self.claims.is_followed:
                self.claims.hint()

        def delete(pod: PodView) -> None:
            self._world.delete_pod(pod.uid)
            self._changed(PodChanged(pod.uid))

        def project(obj: JsonObject | Pod) -> PodView | None:
            return project_pod(obj, self._settings)

        feed = Feed(put=put, delete=delete)
        return self._source.kind(PODS, project, feed, shape=Pod)

    def _queues(self) -> Kind[Queue]:
        def put(queue: Queue) -> None:
            before = self._world.facts.tree.get(queue.name)
            self._world.put_queue(queue)
            # Whether it is kept changes nobody's verdict.
            if before is None or replace(before, is_kept=queue.is_kept) != queue:
                self._changed(QueueChanged(queue.name))

        def delete(queue: Queue) -> None:
            self._world.delete_queue(queue.name)
            self._changed(QueueChanged(queue.name))

        feed = Feed(put=put, delete=delete)
        return self._source.kind(QUEUES, parse_queue, feed)

    def _namespaces(self) -> Kind[NamespaceView]:
        def put(namespace: NamespaceView) -> None:
            self._world.put_namespace(namespace)
            self._changed(NamespaceChanged(namespace.name))

        def delete(namespace: NamespaceView) -> None:
            self._world.delete_namespace(namespace.name)
            self._changed(NamespaceChanged(namespace.name))

        feed = Feed(put=put, delete=delete)
        return self._source.kind(NAMESPACES, namespace_view, feed)

    def _classes(self) -> Kind[ClassView]:
        def delete(found: ClassView) -> None:
            self._world.delete_class(found.name)

        feed = self._other(self._world.put_class, delete)
        return self._source.kind(CLASSES, class_view, feed, is_optional=True)

    def _slices(self) -> Kind[SliceView]:
        def put(found: SliceView) -> None:
            if self._world.put_slice(found):
                self._changed(OtherChanged())

        def delete(found: SliceView) -> None:
            if self._world.delete_slice(found.name):
                self._changed(OtherChanged())

        feed = Feed(put=put, delete=delete)
        return self._source.kind(SLICES, slice_view, feed, is_optional=True)

    def _configurations(self) -> Kind[ResourceKey]:
        world = self._world
        feed = self._other(world.put_configuration, world.delete_configuration)
        return self._source.kind(CONFIGURATIONS, project_configuration, feed, is_optional=True)

    def _instances_kind(self) -> Kind[InstanceView]:
        def put(instance: InstanceView) -> None:
            if self._world.put_instance(instance):
                self._changed(OtherChanged())

        def delete(instance: InstanceView) -> None:
            self._world.delete_instance(instance.name)
            # Two namespaces may each have an Instance of this name.
            for other in self._instances.store:
                if other.name == instance.name:
                    self._world.put_instance(other)
            self._changed(OtherChanged())

        feed = Feed(put=put, delete=delete)
        return self._source.kind(INSTANCES, instance_view, feed, is_optional=True)

    def _group(self, resource: Resource) -> Kind[PodGroupView]:
        def project(obj: JsonObject) -> PodGroupView:
            return pod_group_view(obj, self._settings, resource.api_version)

        def put(group: PodGroupView) -> None:
            self._world.put_group(group)
            self._changed(GroupChanged(group.namespace, group.name))

        def delete(group: PodGroupView) -> None:
            self._world.delete_group(group.namespace, group.name)
            # Two API groups may each have a PodGroup of this name.
            for kind in self._groups:
                other = kind.store.get(group.name, group.namespace)
                if other is not None:
                    self._world.put_group(other)
            self._changed(GroupChanged(group.namespace, group.name))

        def served() -> None:
            self._world.serve_groups(served=True)
            self._changed(OtherChanged())

        feed = Feed(put=put, delete=delete)
        kind = self._source.kind(resource, project, feed, is_optional=True)
        kind.served = served
        return kind

    def _other(self, put: Callable[[T], None], delete: Callable[[T], None]) -> Feed[T]:
        def put_and_tell(value: T) -> None:
            put(value)
            self._changed(OtherChanged())

        def delete_and_tell(value: T) -> None:
            delete(value)
            self._changed(OtherChanged())

        return Feed(put=put_and_tell, delete=delete_and_tell)
