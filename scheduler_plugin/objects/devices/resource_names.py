"""Names of extended resources, those of Akri and those of classes, and of pools."""

from __future__ import annotations

from driver.api import AKRI_GROUP, LOCAL_POOLS, SHARED_POOLS
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX

LEGACY_PREFIX = f"{AKRI_GROUP}/"


def resources_of_class(name: ClassName, *views: ClassView | None) -> set[str]:
    """The extended resources of a class, by these views of it."""
    named = {view.extended_resource for view in views if view is not None}
    return {f"{IMPLICIT_PREFIX}{name}", *named} - {""}


def configuration_of_pool(pool: str) -> ResourceKey | None:
    """The Configuration at the end of a pool's name; None for the pool of a whole node."""
    if pool.startswith(SHARED_POOLS):
        return ResourceKey(pool.removeprefix(SHARED_POOLS))
    if pool.startswith(LOCAL_POOLS):
        return ResourceKey(pool.removeprefix(LOCAL_POOLS).partition("/")[2])
    return None


def is_legacy(resource: str) -> bool:
    """Whether a resource is one of Akri's names."""
    return resource.startswith(LEGACY_PREFIX)


def named_by(*instances: InstanceView | None) -> set[str]:
    """The resources whose meaning depends on Instances: their own, and their Configurations'."""
    known = [instance for instance in instances if instance is not None]
    names = {name for i in known for name in (i.name, str(i.configuration))}
    return {f"{LEGACY_PREFIX}{name}" for name in names}
