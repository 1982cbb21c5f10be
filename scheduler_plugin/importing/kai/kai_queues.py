"""KAI's Queues as drafts: the same tree, priorities and run times, with GPUs as one DeviceClass.

Only leaves of KAI's tree are scheduled from, by pods of any namespace. So a leaf admits all
namespaces, and a parent none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube.models import flaws
from kube.shapes.quantities import PER_UNIT
from scheduler_plugin.importing.definitions import accepted, of_class
from scheduler_plugin.importing.device_classes import DeviceClasses
from scheduler_plugin.importing.drafts import Draft, Entry, Key, in_cycles
from scheduler_plugin.importing.findings import Finding, Reasons, Unsaid
from scheduler_plugin.importing.foreign import UNLIMITED, unread_findings
from scheduler_plugin.importing.kai.accounted_resources import Counted, counted
from scheduler_plugin.importing.kai.kai_models import (
    AccountedResource,
    KaiQueue,
    KaiQueueSpec,
    QueueResource,
    QueueResources,
)
from scheduler_plugin.importing.weights import WeightScale, scale_of
from scheduler_plugin.models import QueueSpec
from scheduler_plugin.objects.measures import Definition

KIND = "Queue"
GPU = "spec.resources.gpu"
NO_GPU_CLASS = "KAI counts whole GPUs of any kind: name their DeviceClass by --gpu-class."
PARTS = "Devices are counted whole. The Queue has the number of whole GPUs below it."
NEVER_ABOVE = (
    "With a weight of 0 the Queue never exceeds its quota. In KAI it has no share beyond it, but"
    " may use what is free."
)
LARGE_WEIGHT = "The largest weight is 1000000; the Queue has that."
DEFAULT = "The Queue has the default."
CYCLE = "The parents form a cycle. The Queue is a root."
NO_RESOURCE = "No AccountedResource of this name with an entry of its own is in the input."

REASONS = Reasons(
    {
        "spec.displayName": "A Queue has no name but its own.",
    },
    {},
)
OF_RESOURCES = Reasons({}, {}, "The proposal of AccountedResources has no such field.")


@dataclass(frozen=True, slots=True)
class KaiObjects:
    """The objects of KAI in the input."""

    queues: tuple[KaiQueue, ...]
    resources: tuple[AccountedResource, ...]


def kai_drafts(kai: KaiObjects, classes: DeviceClasses) -> tuple[list[Draft], list[Finding]]:
    """The Queues that say what KAI's do, and what they cannot say."""
    gpu = accepted(of_class(classes.gpu_class)) if classes.gpu_class else Unsaid(NO_GPU_CLASS)
    used = (gpu,) if isinstance(gpu, Definition) else ()
    accounted = counted(kai.resources, classes, used)
    translation = _Translation(
        gpu=gpu,
        accounted=accounted,
        scale=scale_of(_weights(kai.queues)),
        defaults=dict(_defaults(kai.resources, accounted)),
        parents=_parents(kai.queues),
    )
    findings = [*accounted.findings, *_unread_of(kai.resources)]
    for queue in kai.queues:
        findings += translation.findings(queue)
    return [translation.draft(queue) for queue in kai.queues], findings


def _unread_of(resources: Iterable[AccountedResource]) -> Iterator[Finding]:
    """Findings beside those of sources, which `accounted_resources` has."""
    for each in resources:
        for found in unread_findings(each, OF_RESOURCES):
            if not found.paths[0].startswith("spec.sources["):
                yield found


def _weights(queues: Iterable[KaiQueue]) -> Iterator[int]:
    for queue in queues:
        if (gpu := _resources(queue).gpu) and gpu.over_quota_weight not in (None, UNLIMITED):
            yield gpu.over_quota_weight or 0


def _defaults(
    resources: Iterable[AccountedResource], accounted: Counted
) -> Iterator[tuple[str, int]]:
    """The limits of Queues that do not list a resource."""
    for each in resources:
        defaults = each.spec.defaults if each.spec else None
        if each.name in accounted.by_name and defaults and defaults.limit is not None:
            yield each.name, defaults.limit


def _parents(queues: Iterable[KaiQueue]) -> dict[Key, Key]:
    """The parent of each queue; queues of a cycle have none."""
    given = {
        Key(KIND, queue.name): Key(KIND, parent)
        for queue in queues
        if (parent := _spec(queue).parent_queue)
    }
    cut = in_cycles(given)
    return {key: parent for key, parent in given.items() if key not in cut}


def _spec(queue: KaiQueue) -> KaiQueueSpec:
    return queue.spec or KaiQueueSpec()


def _resources(queue: KaiQueue) -> QueueResources:
    return _spec(queue).resources or QueueResources()


_FIELDS: Mapping[str, Callable[[KaiQueueSpec], Any]] = {
    "priority": lambda spec: spec.priority,
    "preemptMinRuntime": lambda spec: spec.preempt_min_runtime,
    "reclaimMinRuntime": lambda spec: spec.reclaim_min_runtime,
}
"""Fields that have the same name and meaning in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Translation:
    """What is known of all queues together.

    Attributes:
        gpu: What GPUs are, or why that is not known.
        defaults: Limits of Queues that do not list an AccountedResource.
        parents: Without those of a cycle.
    """

    gpu: Definition | Unsaid
    accounted: Counted
    scale: WeightScale
    defaults: Mapping[str, int]
    parents: Mapping[Key, Key]

    def draft(self, queue: KaiQueue) -> Draft:
        key = Key(KIND, queue.name)
        selector: dict[str, Any] | None = None if key in self.parents.values() else {}
        fields = {name: value for name, value, flaw in self._fields(queue) if not flaw}
        return Draft(
            key=key,
            parent=self.parents.get(key),
            fields={"namespaceSelector": selector, **fields},
            entries=(*self._gpus(queue), *self._accounted(queue)),
        )

    def findings(self, queue: KaiQueue) -> Iterator[Finding]:
        about = queue.about
        yield from unread_findings(queue, REASONS)
        for name, _, flaw in self._fields(queue):
            if flaw:
                yield Finding(about, (f"spec.{name}",), f"{flaw} {DEFAULT}")
        for path, sentence in (*self._of_gpus(queue), *self._of_parent(queue)):
            yield Finding(about, (path,), sentence)
        for name, resource in _of_nodes(_resources(queue)).items():
            if resource.quota != UNLIMITED or resource.limit != UNLIMITED:
                sentence = f"Queues count devices, and no {name}."
                yield Finding(about, (f"spec.resources.{name}",), sentence)
        for number, each in enumerate(_spec(queue).accounted_resources or ()):
            if each.resource_ref not in self.accounted.by_name:
                yield Finding(about, (f"spec.accountedResources[{number}]",), NO_RESOURCE)

    def _fields(self, queue: KaiQueue) -> Iterator[tuple[str, Any, str]]:
        """Name and value of each field that is written as it is, and what is wrong with it."""
        for name, read in _FIELDS.items():
            if (value := read(_spec(queue))) is not None:
                found = next(iter(flaws(QueueSpec, {name: value})), None)
                yield name, value, found[1] if found else ""

    def _of_parent(self, queue: KaiQueue) -> Iterator[tuple[str, str]]:
        if _spec(queue).parent_queue and Key(KIND, queue.name) not in self.parents:
            yield "spec.parentQueue", CYCLE

    def _of_gpus(self, queue: KaiQueue) -> Iterator[tuple[str, str]]:
        gpu = _gpu(queue)
        if gpu is None:
            return
        if isinstance(self.gpu, Unsaid):
            yield GPU, self.gpu.sentence
            return
        for name, amount in (("quota", gpu.quota), ("limit", gpu.limit)):
            if amount not in (None, UNLIMITED) and (amount or 0) % PER_UNIT:
                yield f"{GPU}.{name}", f"{(amount or 0) / PER_UNIT:g} GPUs: {PARTS}"
        weight = max(0, gpu.over_quota_weight or 0)
        quota, limit = _ceilings(gpu)
        if not weight and quota != limit and quota != UNLIMITED:
            yield f"{GPU}.overQuotaWeight", NEVER_ABOVE
        if not self.scale.is_exact(weight):
            yield f"{GPU}.overQuotaWeight", LARGE_WEIGHT

    def _gpus(self, queue: KaiQueue) -> Iterator[Entry]:
        gpu = _gpu(queue)
        if gpu is not None and isinstance(self.gpu, Definition):
            weight = self.scale.written(max(0, gpu.over_quota_weight or 0))
            yield Entry(self.gpu, *_ceilings(gpu), weight)

    def _accounted(self, queue: KaiQueue) -> Iterator[Entry]:
        """Entries with limits alone: what is within the limit is within the quota, too."""
        listed = _spec(queue).accounted_resources or ()
        limits = {**self.defaults, **{each.resource_ref: each.limit for each in listed}}
        for name, limit in limits.items():
            if name in self.accounted.by_name and limit != UNLIMITED:
                yield Entry(self.accounted.by_name[name], UNLIMITED, limit)


def _ceilings(resource: QueueResource) -> tuple[int, int]:
    """Quota and limit; a quota beyond the limit guarantees no more than the limit."""
    quota, limit = resource.quota or 0, resource.limit or 0
    return (min(quota, limit) if UNLIMITED not in (quota, limit) else quota), limit


def _gpu(queue: KaiQueue) -> QueueResource | None:
    """Amounts of GPUs. Absent beside other resources they are 0; KAI has no queue without any."""
    resources = _spec(queue).resources
    return None if resources is None else resources.gpu or QueueResource()


def _of_nodes(resources: QueueResources) -> dict[str, QueueResource]:
    """Amounts of what nodes have, by name."""
    found = {"cpu": resources.cpu, "memory": resources.memory}
    return {name: each for name, each in found.items() if each is not None}
