"""What a name stands for: from classes and extended resources to the keys that queues count.

    DeviceClass ──► its Configuration (a label of the class), else itself
    class that is gone ──► the Configuration of the Instance of its name, else itself
    extended resource ──► the class that names it, or that its implicit name names ──► as above
    akri.sh/<Configuration>, akri.sh/<Instance> ──► the Configuration

Names are looked up among the objects that exist, never taken apart by a pattern. A Configuration
that is deleted under use is known by its Instances, which stay while slots of them are held, and by
the devices that are published, which stay while a claim has them; so is the class of an Instance.
So what is held is charged until it ends; nothing is remembered that a restart would not find.
"""

from __future__ import annotations

from collections.abc import Callable

from driver.api import AKRI_GROUP
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.device_counts import DeviceCounts
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX
from scheduler_plugin.objects.tables import Index, count, enter

LEGACY_PREFIX = f"{AKRI_GROUP}/"


class Catalog:
    """All classes, Configurations, Instances and slices. A read sees every earlier write."""

    def __init__(self, lists: Callable[[ResourceKey], bool]) -> None:
        """`lists` says whether some queue lists a key."""
        self._lists = lists
        self._classes: dict[ClassName, ClassView] = {}
        self._by_extended: Index[str, ClassName] = {}
        self._configurations: dict[ResourceKey, int] = {}
        self._instances: dict[str, InstanceView] = {}
        self._with_instances: dict[ResourceKey, int] = {}
        self._slices: dict[str, SliceView] = {}
        self._counts = DeviceCounts()
        # How many slices show a device of the Instance as one of which Configuration.
        self._published: dict[str, dict[ResourceKey, int]] = {}

    def put_class(self, view: ClassView) -> None:
        self.remove_class(view.name)
        self._classes[view.name] = view
        if view.extended_resource:
            enter(self._by_extended, [view.extended_resource], view.name)

    def remove_class(self, name: ClassName) -> None:
        before = self._classes.pop(name, None)
        if before is not None and before.extended_resource:
            enter(self._by_extended, [before.extended_resource], name, -1)

    def class_named(self, name: ClassName) -> ClassView | None:
        return self._classes.get(name)

    def put_configuration(self, name: ResourceKey) -> None:
        """Note that one more Configuration has this name; two namespaces may each have one."""
        count(self._configurations, name, 1)

    def remove_configuration(self, name: ResourceKey) -> None:
        count(self._configurations, name, -1)

    def instance_named(self, name: str) -> InstanceView | None:
        return self._instances.get(name)

    def instances(self) -> list[InstanceView]:
        return list(self._instances.values())

    def capacity(self, node: str, key: ResourceKey) -> int:
        """The most uses of a Configuration's devices that a node can hold."""
        instances = (found for found in self._instances.values() if node in found.nodes)
        return sum(found.capacity for found in instances if found.configuration == key)

    def put_instance(self, view: InstanceView) -> None:
        self.remove_instance(view.name)
        self._instances[view.name] = view
        count(self._with_instances, view.configuration, 1)

    def remove_instance(self, name: str) -> None:
        before = self._instances.pop(name, None)
        if before is not None:
            count(self._with_instances, before.configuration, -1)

    def slice_named(self, name: str) -> SliceView | None:
        return self._slices.get(name)

    def put_slice(self, view: SliceView) -> None:
        self.remove_slice(view.name)
        self._slices[view.name] = view
        self._counts.add(view)
        for configuration, instance in instances_of(view):
            count(self._published.setdefault(instance, {}), configuration, 1)

    def remove_slice(self, name: str) -> None:
        before = self._slices.pop(name, None)
        if before is not None:
            self._counts.add(before, -1)
        for configuration, instance in instances_of(before):
            found = self._published[instance]
            count(found, configuration, -1)
            if not found:
                del self._published[instance]

    def key(self, name: ClassName) -> ResourceKey:
        """The key that a class is counted under; a class that nothing tells of counts as itself."""
        view = self._classes.get(name)
        if view is None:
            return self._key_of_instance(name) or ResourceKey(name)
        return view.configuration or ResourceKey(name)

    def _key_of_instance(self, name: str) -> ResourceKey | None:
        """The Configuration of an Instance, as the Instance or its published devices say."""
        instance = self._instances.get(name)
        if instance is not None:
            return instance.configuration
        return min(self._published.get(name, ()), default=None)

    def accounted_key(self, name: ClassName) -> ResourceKey | None:
        """The same, or None where the class is not accounted.

        Accounted is what the class's label says; without it the classes that Moorage makes, and
        those that some queue lists.
        """
        view, key = self._classes.get(name), self.key(name)
        made_here = view is not None and bool(view.configuration)
        if view is None and str(key) != name:
            # It was made here for an Instance. What its label said, its Configuration's may say.
            view, made_here = self._classes.get(ClassName(key)), True
        if view is not None and view.accounted is not None:
            return key if view.accounted else None
        return key if made_here or self._lists(key) else None

    def has_class_of(self, name: ClassName) -> bool:
        """Whether something says if a class is accounted: itself, or that of its Configuration."""
        return name in self._classes or ClassName(self.key(name)) in self._classes

    def max_pods(self, name: ClassName) -> int | None:
        view = self._classes.get(name)
        return view.max_pods if view else None

    def resource_class(self, resource: str) -> ClassName | None:
        """The class behind an extended resource; of several the newest, as in kube-scheduler."""
        if resource.startswith(IMPLICIT_PREFIX):
            return ClassName(resource.removeprefix(IMPLICIT_PREFIX))
        names = sorted(self._by_extended.get(resource, ()))
        return max(names, key=lambda name: self._classes[name].created, default=None)

    def accounted_resource(self, resource: str) -> ResourceKey | None:
        """The key of an extended resource; None where it is not accounted or not known."""
        name = self.resource_class(resource)
        if name is not None:
            return self.accounted_key(name)
        return self._legacy_key(resource) if is_legacy(resource) else None

    def _legacy_key(self, resource: str) -> ResourceKey | None:
        name = resource.removeprefix(LEGACY_PREFIX)
        key, instance = ResourceKey(name), self._instances.get(name)
        if key not in self._configurations and key not in self._with_instances:
            if instance is None:
                return None
            key = instance.configuration
        view = self._classes.get(ClassName(key))
        return None if view is not None and view.accounted is False else key

    def devices(self, name: ClassName) -> int:
        """The most devices that a claim for all of a class can get."""
        view = self._classes.get(name)
        return self._counts.most(view) if view is not None else 0


def instances_of(view: SliceView | None) -> set[tuple[ResourceKey, str]]:
    """The Instances that a slice shows, each with its Configuration."""
    origins = (origin for origin, _ in view.counts) if view is not None else ()
    return {(ResourceKey(configuration), name) for configuration, name in origins if name}


def resources_of_class(name: ClassName, *views: ClassView | None) -> set[str]:
    """The extended resources that a class is behind, as these views of it say."""
    named = {view.extended_resource for view in views if view is not None}
    return {f"{IMPLICIT_PREFIX}{name}", *named} - {""}


def is_legacy(resource: str) -> bool:
    """Whether a resource is one of Akri's names."""
    return resource.startswith(LEGACY_PREFIX)
