"""The DeviceClass that an extended resource stands for.

Kubernetes finds it by `spec.extendedResourceName` of the class, or in the name of the resource
itself. Without the class's object a user names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler_plugin.importing.findings import Unsaid
from scheduler_plugin.importing.foreign import Foreign, ForeignObject
from scheduler_plugin.objects.requests import IMPLICIT_PREFIX

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource that KAI takes for whole GPUs."""

OF_NODES = frozenset({"cpu", "memory", "pods", "ephemeral-storage", "storage"})
HUGE_PAGES = "hugepages-"


class DeviceClassSpec(Foreign):
    """The part of a DeviceClass that names its extended resource."""

    extended_resource_name: str | None = None


class DeviceClass(ForeignObject):
    """A DeviceClass of `resource.k8s.io`."""

    spec: DeviceClassSpec | None = None


@dataclass(frozen=True, slots=True)
class DeviceClasses:
    """What is known of the classes of resources.

    Attributes:
        given: Classes that the user named, by resource; they win.
        found: Classes of the input, by extended resource.
        gpu_class: The class of whole GPUs; "" if the user named none.
    """

    given: Mapping[str, str]
    found: Mapping[str, tuple[str, ...]]
    gpu_class: str = ""

    def of(self, resource: str) -> str | Unsaid:
        """The class of a resource, or why there is none."""
        if resource in OF_NODES or resource.startswith(HUGE_PAGES):
            return Unsaid(f"Queues count devices, and no {resource}.")
        if given := self.given.get(resource) or (resource == GPU_RESOURCE and self.gpu_class):
            return given
        if resource.startswith(IMPLICIT_PREFIX):
            return resource.removeprefix(IMPLICIT_PREFIX)
        return self._of_objects(resource)

    def _of_objects(self, resource: str) -> str | Unsaid:
        match self.found.get(resource, ()):
            case (found,):
                return found
            case ():
                return Unsaid(
                    f"No DeviceClass of {resource} is known: add the DeviceClass, or Kueue's"
                    f" Configuration if it maps it, to the input, or --device-class"
                    f" {resource}=CLASS."
                )
            case several:
                return Unsaid(
                    f"{' and '.join(several)} are DeviceClasses of {resource}: choose by"
                    f" --device-class {resource}=CLASS."
                )


def by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, tuple[str, ...]]:
    """The names of classes by their extended resource."""
    found: dict[str, tuple[str, ...]] = {}
    for each in classes:
        if each.spec and (resource := each.spec.extended_resource_name):
            found[resource] = (*found.get(resource, ()), each.name)
    return found
