"""Names of extended resources: those of Akri, and those of classes."""

from __future__ import annotations

from driver.api import AKRI_GROUP
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX

LEGACY_PREFIX = f"{AKRI_GROUP}/"


def resources_of_class(name: ClassName, *views: ClassView | None) -> set[str]:
    """The extended resources of a class, by these views of it."""
    named = {view.extended_resource for view in views if view is not None}
    return {f"{IMPLICIT_PREFIX}{name}", *named} - {""}


def is_legacy(resource: str) -> bool:
    """Whether a resource is one of Akri's names."""
    return resource.startswith(LEGACY_PREFIX)


def named_by(*instances: InstanceView | None) -> set[str]:
    """The resources whose meaning depends on Instances: their own, and their Configurations'."""
    known = [instance for instance in instances if instance is not None]
    names = {name for i in known for name in (i.name, str(i.configuration))}
    return {f"{LEGACY_PREFIX}{name}" for name in names}
