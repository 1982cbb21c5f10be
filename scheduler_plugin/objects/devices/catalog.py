"""What a name stands for: from classes and extended resources to the keys that queues count.

    device of ours ──► its Configuration, as its slice says, else its pool or its Instance;
                       else the class that was asked for
    DeviceClass ──► its Configuration (a label of the class, or its selector), else itself
    class that is gone ──► the Configuration of the Instance of its name, else itself
    extended resource ──► the class that names it, or that its implicit name names ──► as above
    akri.sh/<Configuration>, akri.sh/<Instance> ──► the Configuration

Names are looked up among the objects that exist, never taken apart by a pattern. A Configuration
that is deleted under use is known by its Instances, which stay while slots of them are held, and by
the devices that are published, which stay while a claim has them; so is the class of an Instance.
So what is held is charged until it ends. All that is remembered of what is gone, and a restart
forgets, is behind which extended resources a class was: a claim may just have been made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cachetools import FIFOCache

from driver.api import DRIVER_NAME, LOCAL_POOLS, SHARED_POOLS
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName, DeviceId
from scheduler_plugin.objects.devices.device_counts import DeviceCounts
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.objects.devices.resource_names import LEGACY_PREFIX, is_legacy
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX
from scheduler_plugin.objects.tables import Index, count, enter

K = TypeVar("K")

MOST_OF_A_NAME = 63
"""Characters of a Configuration's name that a label has room for, and so the key: devices say more.
"""


MOST_REMEMBERED = 1_000
"""How many extended resources are remembered that a class was behind."""


class Catalog:
    """All classes, Configurations, Instances and slices. A read sees every earlier write."""

    def __init__(self, lists: Callable[[ResourceKey], bool]) -> None:
        """`lists` says whether some queue lists a key."""
        self._lists = lists
        self._classes: dict[ClassName, ClassView] = {}
        self._by_extended: Index[str, ClassName] = {}
        self._left = FIFOCache[str, None](MOST_REMEMBERED)
        self._configurations: dict[ResourceKey, int] = {}
        self._instances: dict[str, InstanceView] = {}
        self._with_instances: dict[ResourceKey, int] = {}
        self._slices: dict[str, SliceView] = {}
        self._counts = DeviceCounts()
        # How many slices show a device of the Instance as one of which Configuration.
        self._published: dict[str, dict[ResourceKey, int]] = {}
        # How many show a device as one of which Configuration.
        self._shown: dict[DeviceId, dict[ResourceKey, int]] = {}
        # How many slices of a driver's pool there are.
        self._pools: dict[tuple[str, str], int] = {}

    def put_class(self, view: ClassView) -> None:
        self.remove_class(view.name)
        self._classes[view.name] = view
        if view.extended_resource:
            enter(self._by_extended, [view.extended_resource], view.name)

    def remove_class(self, name: ClassName) -> None:
        before = self._classes.pop(name, None)
        if before is not None and before.extended_resource:
            enter(self._by_extended, [before.extended_resource], name, -1)
            self._left[before.extended_resource] = None

    def class_named(self, name: ClassName) -> ClassView | None:
        return self._classes.get(name)

    def put_configuration(self, name: ResourceKey) -> None:
        """Note that one more Configuration has this name; two namespaces may each have one."""
        count(self._configurations, name, 1)

    def remove_configuration(self, name: ResourceKey) -> None:
        count(self._configurations, name, -1)

    def has_configuration(self, name: ResourceKey) -> bool:
        """Whether there is a Configuration of this name, in whatever namespace."""
        return name in self._configurations

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
        count(self._pools, (view.driver, view.pool), 1)
        for configuration, instance in instances_of(view):
            count(self._published.setdefault(instance, {}), configuration, 1)
        for device, configuration in view.configurations:
            count(self._shown.setdefault(device, {}), configuration, 1)

    def remove_slice(self, name: str) -> None:
        before = self._slices.pop(name, None)
        if before is None:
            return
        self._counts.add(before, -1)
        count(self._pools, (before.driver, before.pool), -1)
        for configuration, instance in instances_of(before):
            _uncount(self._published, instance, configuration)
        for device, configuration in before.configurations:
            _uncount(self._shown, device, configuration)

    def configuration_of(self, device: DeviceId) -> ResourceKey | None:
        """The Configuration of a device of ours; None where nothing tells, and for any other.

        Where no slice shows it any more the allocation may: by a pool that is one Configuration's,
        or by the Instance that the device is named after.
        """
        if device.driver != DRIVER_NAME:
            return None
        shown = min(self._shown.get(device, ()), default=None)
        if found := shown or _of_pool(device.pool):
            return found
        instance = self._instances.get(device.name)
        return instance.configuration if instance is not None else None

    def key(self, name: ClassName) -> ResourceKey:
        """The key that a class is counted under; a class that nothing tells of counts as itself."""
        view = self._classes.get(name)
        if view is None:
            return self._key_of_instance(name) or ResourceKey(name)
        return view.configuration or view.selects or ResourceKey(name)

    def _key_of_instance(self, name: str) -> ResourceKey | None:
        """The Configuration of an Instance, as the Instance or its published devices say."""
        instance = self._instances.get(name)
        if instance is not None:
            return instance.configuration
        return min(self._published.get(name, ()), default=None)

    def accounted_key(self, name: ClassName) -> ResourceKey | None:
        """The same, or None where the class is not accounted.

        Accounted is what the class's label says; without it the classes that select nothing but
        devices of ours, and those that some queue lists.
        """
        view, key = self._classes.get(name), self.key(name)
        if self._is_exempt(view, key):
            return None
        # One that is gone and has another key was made here for an Instance.
        is_ours = str(key) != name if view is None else view.is_ours or bool(view.accounted)
        return key if is_ours or self._lists(key) else None

    def asked_key(self, name: ClassName) -> ResourceKey | None:
        """The same as far as it is known before anything is allocated."""
        view = self._classes.get(name)
        return None if view is not None and view.is_of_several else self.accounted_key(name)

    def held_key(self, device: DeviceId, name: ClassName) -> ResourceKey | None:
        """What a device of ours is charged as that was allocated for a class.

        Its Configuration, whatever class was asked for; the class's key where nothing shows the
        device any more; None where it is not accounted.
        """
        key = self.configuration_of(device)
        if key is None or len(key) > MOST_OF_A_NAME:
            key = self.key(name)
        return None if self._is_exempt(self._classes.get(name), key) else key

    def may_be_ours(self, name: ClassName) -> bool:
        """Whether a claim of the class may come to have an accounted device of ours."""
        view = self._classes.get(name)
        return view is None or (view.accounted is not False and view.may_be_ours)

    def _is_exempt(self, view: ClassView | None, key: ResourceKey) -> bool:
        """Whether an administrator's label says that devices are not accounted.

        The label of the class that is asked for; where that says nothing and Moorage did not make
        it, the label of the class of the Configuration.
        """
        if view is None or (view.accounted is None and not view.configuration):
            view = self._classes.get(ClassName(key))
        return view is not None and view.accounted is False

    def may_have_slots(self, name: ClassName) -> bool:
        """Whether a class may select devices of ours: of other drivers' no slots are counted."""
        view = self._classes.get(name)
        return view is None or bool(view.configuration) or {DRIVER_NAME}.issuperset(view.drivers)

    def max_pods(self, name: ClassName) -> int | None:
        view = self._classes.get(name)
        return view.max_pods if view else None

    def resource_class(self, resource: str) -> ClassName | None:
        """The class behind an extended resource; of several the newest, as in kube-scheduler."""
        if resource.startswith(IMPLICIT_PREFIX):
            return ClassName(resource.removeprefix(IMPLICIT_PREFIX))
        names = sorted(self._by_extended.get(resource, ()))
        return max(names, key=lambda name: self._classes[name].created, default=None)

    def had_class(self, resource: str) -> bool:
        """Whether no class is behind an extended resource any more, and one was."""
        return resource in self._left and resource not in self._by_extended

    def accounted_resource(self, resource: str) -> ResourceKey | None:
        """The key of an extended resource; None where it is not accounted or not known."""
        name = self.resource_class(resource)
        if name is not None:
            return self.accounted_key(name)
        return self._legacy_key(resource) if is_legacy(resource) else None

    def asked_resource(self, resource: str) -> ResourceKey | None:
        """The same as far as it is known before anything is allocated."""
        name = self.resource_class(resource)
        return self.accounted_resource(resource) if name is None else self.asked_key(name)

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

    def has_pool(self, device: DeviceId) -> bool:
        """Whether anything of a device's pool is published."""
        return (device.driver, device.pool) in self._pools

    def published(self, name: ClassName) -> int:
        """How many devices are published that may be of a class, anywhere."""
        view = self._classes.get(name)
        return self._counts.total(view) if view is not None else 0


def _of_pool(pool: str) -> ResourceKey | None:
    """The Configuration that the name of a pool ends with; None for the pool of a whole node."""
    if pool.startswith(SHARED_POOLS):
        return ResourceKey(pool.removeprefix(SHARED_POOLS))
    if pool.startswith(LOCAL_POOLS):
        return ResourceKey(pool.removeprefix(LOCAL_POOLS).partition("/")[2])
    return None


def _uncount(table: dict[K, dict[ResourceKey, int]], at: K, key: ResourceKey) -> None:
    found = table[at]
    count(found, key, -1)
    if not found:
        del table[at]


def instances_of(view: SliceView | None) -> set[tuple[ResourceKey, str]]:
    """The Instances that a slice shows, each with its Configuration."""
    origins = (origin for origin, _ in view.counts) if view is not None else ()
    return {(ResourceKey(configuration), name) for configuration, name in origins if name}
