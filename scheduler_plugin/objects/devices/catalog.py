"""The keys that queues count, for classes, devices and extended resources.

    Moorage's device ──► its Configuration, by its slice, else its pool or its Instance;
                         else the requested class
    DeviceClass ──► its Configuration (by its label or its selectors), else itself
    deleted class ──► the Configuration of the Instance of its name, else itself
    extended resource ──► its class (explicit or implicit) ──► as above
    akri.sh/<Configuration>, akri.sh/<Instance> ──► the Configuration

Names are looked up among existing objects, and not parsed by a pattern. A Configuration that is
deleted while in use is known by its Instances, which stay while their slots are held, and by its
published devices, which stay while they are allocated; so is the class of an Instance. So devices
are charged until their use ends. The only memory of deleted objects, which a restart loses, is
which extended resources had a class: a claim may just have been made of it.
"""

from __future__ import annotations

from collections.abc import Callable

from cachetools import FIFOCache

from driver.api import DRIVER_NAME
from driver.shapes.instance_taints import TaintRuleIndex
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName, DeviceId
from scheduler_plugin.objects.devices.definitions import Definitions
from scheduler_plugin.objects.devices.device_counts import DeviceCounts
from scheduler_plugin.objects.devices.device_facts import DeviceTable
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView, SliceView
from scheduler_plugin.objects.devices.gettable import Gettable
from scheduler_plugin.objects.devices.repelling_rules import RepellingRules
from scheduler_plugin.objects.devices.resource_names import (
    LEGACY_PREFIX,
    configuration_of_pool,
    is_legacy,
)
from scheduler_plugin.objects.devices.selections import Selections
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX
from scheduler_plugin.objects.tables import Index, count, enter, uncount

MOST_OF_A_NAME = 63
"""Characters of a Configuration's name in a label, and so in the key; devices have the whole name.
"""


MOST_REMEMBERED = 1_000
"""How many extended resources of deleted classes are remembered."""


class Catalog:
    """All classes, Configurations, Instances, slices and DeviceTaintRules."""

    def __init__(
        self, lists: Callable[[ResourceKey], bool], definitions: Definitions | None = None
    ) -> None:
        """`lists` says whether any queue lists a key; `definitions` are what else queues count."""
        self._lists = lists
        self.definitions = definitions if definitions is not None else Definitions()
        self.device_table = DeviceTable()
        self.selections = Selections()
        self.gettable = Gettable()
        self._changes = 0
        self._classes: dict[ClassName, ClassView] = {}
        self._by_extended: Index[str, ClassName] = {}
        self._former_resources = FIFOCache[str, None](MOST_REMEMBERED)
        self._configurations: dict[ResourceKey, int] = {}
        self._instances: dict[str, InstanceView] = {}
        self._with_instances: dict[ResourceKey, int] = {}
        self._slices: dict[str, SliceView] = {}
        self._counts = DeviceCounts()
        # By Instance: how many slices list a device of it for each Configuration.
        self._configurations_by_instance: dict[str, dict[ResourceKey, int]] = {}
        # By device: how many slices list it for each Configuration.
        self._configurations_by_device: dict[DeviceId, dict[ResourceKey, int]] = {}
        # By driver and pool: how many slices there are.
        self._pools: dict[tuple[str, str], int] = {}
        self.rules = RepellingRules()

    @property
    def taint_rules(self) -> TaintRuleIndex:
        """The rules whose taint keeps users away."""
        return self.rules.index

    @property
    def version(self) -> tuple[int, int]:
        """Equal versions have equal classes, devices and results of selectors."""
        return self._changes, self.selections.changes

    def put_class(self, view: ClassView) -> None:
        self.remove_class(view.name)
        self._classes[view.name] = view
        if view.extended_resource:
            enter(self._by_extended, [view.extended_resource], view.name)

    def remove_class(self, name: ClassName) -> None:
        self._changes += 1
        before = self._classes.pop(name, None)
        if before is not None and before.extended_resource:
            enter(self._by_extended, [before.extended_resource], name, -1)
            self._former_resources[before.extended_resource] = None

    def class_named(self, name: ClassName) -> ClassView | None:
        return self._classes.get(name)

    def put_configuration(self, name: ResourceKey) -> None:
        """Add a Configuration; several namespaces may have one of this name."""
        count(self._configurations, name, 1)

    def remove_configuration(self, name: ResourceKey) -> None:
        count(self._configurations, name, -1)

    def has_configuration(self, name: ResourceKey) -> bool:
        """Whether any namespace has a Configuration of this name."""
        return name in self._configurations

    def instance_named(self, name: str) -> InstanceView | None:
        return self._instances.get(name)

    def instances(self) -> list[InstanceView]:
        return list(self._instances.values())

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
            count(self._configurations_by_instance.setdefault(instance, {}), configuration, 1)
        for device, configuration in view.configurations:
            count(self._configurations_by_device.setdefault(device, {}), configuration, 1)
        for listed in view.devices:
            self.device_table.add(listed)

    def remove_slice(self, name: str) -> None:
        self._changes += 1
        before = self._slices.pop(name, None)
        if before is None:
            return
        self._counts.add(before, -1)
        count(self._pools, (before.driver, before.pool), -1)
        for configuration, instance in instances_of(before):
            uncount(self._configurations_by_instance, instance, configuration)
        for device, configuration in before.configurations:
            uncount(self._configurations_by_device, device, configuration)
        for listed in before.devices:
            self.device_table.remove(listed)

    def configuration_of(self, device: DeviceId) -> ResourceKey | None:
        """The Configuration of a device of Moorage; None if it is unknown, and for other devices.

        If no slice lists the device any more, its pool may name the Configuration, or the device is
        named after its Instance.
        """
        if device.driver != DRIVER_NAME:
            return None
        shown = min(self._configurations_by_device.get(device, ()), default=None)
        if found := shown or configuration_of_pool(device.pool):
            return found
        instance = self._instances.get(device.name)
        return instance.configuration if instance is not None else None

    def key(self, name: ClassName) -> ResourceKey:
        """The key that a class is counted as; an unknown class is its own key."""
        view = self._classes.get(name)
        if view is None:
            return self._key_of_instance(name) or ResourceKey(name)
        return view.configuration or view.selects or ResourceKey(name)

    def _key_of_instance(self, name: str) -> ResourceKey | None:
        """The Configuration of an Instance, by the Instance or its published devices."""
        instance = self._instances.get(name)
        if instance is not None:
            return instance.configuration
        return min(self._configurations_by_instance.get(name, ()), default=None)

    def accounted_key(self, name: ClassName) -> ResourceKey | None:
        """The key of an accounted class; None if it is not accounted.

        A class is accounted as its label says; without the label, if it selects only devices of
        Moorage, or any queue lists it.
        """
        view, key = self._classes.get(name), self.key(name)
        if self._is_exempt(view, key):
            return None
        # A deleted class with another key was one that Moorage made for an Instance.
        is_ours = str(key) != name if view is None else view.is_ours or bool(view.accounted)
        return key if is_ours or self._lists(key) else None

    def asked_key(self, name: ClassName) -> ResourceKey | None:
        """The key of an accounted class, if it is known before the allocation; else None."""
        view = self._classes.get(name)
        return None if view is not None and view.is_of_several else self.accounted_key(name)

    def held_key(self, device: DeviceId, name: ClassName) -> ResourceKey | None:
        """The key of a device of Moorage that was allocated for a class; None if not accounted.

        It is the device's Configuration, whatever the class; the key of the class if the device is
        unknown.
        """
        key = self.configuration_of(device)
        if key is None or len(key) > MOST_OF_A_NAME:
            key = self.key(name)
        return None if self._is_exempt(self._classes.get(name), key) else key

    def may_be_ours(self, name: ClassName) -> bool:
        """Whether an accounted device of Moorage may be allocated to a claim of the class."""
        view = self._classes.get(name)
        return view is None or (view.accounted is not False and view.may_be_ours)

    def _is_exempt(self, view: ClassView | None, key: ResourceKey) -> bool:
        """Whether a label says that devices are not accounted.

        It is the label of the requested class; if that class has none and Moorage did not make it,
        the label of the Configuration's class.
        """
        if view is None or (view.accounted is None and not view.configuration):
            view = self._classes.get(ClassName(key))
        return view is not None and view.accounted is False

    def is_exempt(self, name: ClassName) -> bool:
        """Whether a label says that devices of a class are not accounted."""
        return self._is_exempt(self._classes.get(name), self.key(name))

    def may_have_slots(self, name: ClassName) -> bool:
        """Whether a class may select devices of Moorage; slots of other drivers are not counted."""
        view = self._classes.get(name)
        return view is None or bool(view.configuration) or {DRIVER_NAME}.issuperset(view.drivers)

    def max_pods(self, name: ClassName) -> int | None:
        view = self._classes.get(name)
        return view.max_pods if view else None

    def resource_class(self, resource: str) -> ClassName | None:
        """The class of an extended resource; the newest of several, as in kube-scheduler."""
        if resource.startswith(IMPLICIT_PREFIX):
            return ClassName(resource.removeprefix(IMPLICIT_PREFIX))
        names = sorted(self._by_extended.get(resource, ()))
        return max(names, key=lambda name: self._classes[name].created, default=None)

    def had_class(self, resource: str) -> bool:
        """Whether an extended resource had a class, and has none now."""
        return resource in self._former_resources and resource not in self._by_extended

    def accounted_resource(self, resource: str) -> ResourceKey | None:
        """The key of an extended resource; None if it is not accounted or unknown."""
        name = self.resource_class(resource)
        if name is not None:
            return self.accounted_key(name)
        return self._legacy_key(resource) if is_legacy(resource) else None

    def asked_resource(self, resource: str) -> ResourceKey | None:
        """The key of an extended resource, if it is known before the allocation; else None."""
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
        """The maximum number of devices for a claim that requests all of a class."""
        view = self._classes.get(name)
        return self._counts.most(view) if view is not None else 0

    def has_pool(self, device: DeviceId) -> bool:
        """Whether any slice of the device's pool is published."""
        return (device.driver, device.pool) in self._pools

    def published(self, name: ClassName) -> int:
        """How many published devices may be of a class, on all nodes."""
        view = self._classes.get(name)
        return self._counts.total(view) if view is not None else 0


def instances_of(view: SliceView | None) -> set[tuple[ResourceKey, str]]:
    """The Instances that a slice lists, each with its Configuration."""
    origins = (origin for origin, _ in view.counts) if view is not None else ()
    return {(ResourceKey(configuration), name) for configuration, name in origins if name}
