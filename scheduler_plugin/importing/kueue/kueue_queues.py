"""Kueue's objects as drafts of Queues: a ClusterQueue is a Queue, and so is a cohort.

A cohort may be a name that ClusterQueues share, without an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from scheduler_plugin.importing.device_classes import DeviceClasses
from scheduler_plugin.importing.drafts import Draft, Entry, Key
from scheduler_plugin.importing.findings import Finding
from scheduler_plugin.importing.foreign import unread_findings
from scheduler_plugin.importing.kueue import reasons
from scheduler_plugin.importing.kueue.cohorts import (
    CLUSTER_QUEUE,
    COHORT,
    Tree,
    entries_of,
    tree_of,
)
from scheduler_plugin.importing.kueue.kueue_models import (
    ClusterQueue,
    Cohort,
    Configuration,
    LocalQueue,
    ResourceFlavor,
)
from scheduler_plugin.importing.kueue.namespaces import namespaces_of, selector_of, too_many
from scheduler_plugin.importing.kueue.quotas import Quotas, quotas_of
from scheduler_plugin.importing.kueue.resources import Resources, resources_of
from scheduler_plugin.importing.weights import WeightScale, scale_of
from scheduler_plugin.objects.measures import Definition

CYCLE = "The cohorts form a cycle, which Kueue admits nothing in. The Queue is a root."
WEIGHT_0 = (
    "Here a weight of 0 means that a Queue never exceeds its quota; in Kueue it comes last. The"
    " Queue has the weight 1."
)
SEVERAL_ENTRIES = (
    "The weight is that of each entry by itself. In Kueue it is of the resource of which the queue"
    " has the largest part."
)
NOT_ENABLED = "Without fairSharing in the Configuration weights mean nothing. The Queue has none."
NO_ENTRY = "The Queue has no entry that could have a weight."
LARGE_WEIGHT = "The largest weight is 1000000; the Queue has that."


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueObjects:
    """The objects of Kueue in the input."""

    cluster_queues: tuple[ClusterQueue, ...]
    cohorts: tuple[Cohort, ...]
    local_queues: tuple[LocalQueue, ...]
    flavors: tuple[ResourceFlavor, ...]
    configurations: tuple[Configuration, ...]

    @property
    def members(self) -> tuple[ClusterQueue | Cohort, ...]:
        """The objects that have quotas."""
        return (*self.cluster_queues, *self.cohorts)

    @property
    def shares_fairly(self) -> bool:
        """Whether weights count; unknown without a Configuration, and then they do."""
        known = [each.fair_sharing is not None for each in self.configurations]
        return any(known) or not known


def kueue_drafts(kueue: KueueObjects, classes: DeviceClasses) -> tuple[list[Draft], list[Finding]]:
    """The Queues that say what Kueue's objects do, and what they cannot say.

    Findings about LocalQueues need the names of Queues, see `local_queue_findings`.
    """
    resources, findings = resources_of(kueue.configurations, classes)
    tree, quotas = _tree_of(kueue, resources)
    weights = {key: weight for key, weight in _weights(kueue) if weight and kueue.shares_fairly}
    scale = scale_of(weights.values())
    entries = entries_of(tree, weights, scale, _blocked(resources, quotas))
    for each in quotas.values():
        findings += each.findings
    findings += _of_weights(kueue, entries, scale)
    findings += _of_cycles(tree)
    findings += _of_cluster_queues(kueue, quotas)
    findings += _of_others(kueue)
    return _drafts(kueue, tree, entries), findings


def _blocked(resources: Resources, quotas: Mapping[Key, Quotas]) -> Iterator[Definition]:
    """What a ClusterQueue that does not cover it admits nothing of."""
    if resources.blocks_undeclared:
        yield from (each for each in resources.mapped.values() if isinstance(each, Definition))
        yield from (definition for each in quotas.values() for definition in each.by_definition)


def _drafts(
    kueue: KueueObjects, tree: Tree, entries: Mapping[Key, tuple[Entry, ...]]
) -> list[Draft]:
    namespaces = namespaces_of(kueue.local_queues)
    selectors = {
        Key(CLUSTER_QUEUE, each.name): selector_of(each, namespaces.get(each.name, []))
        for each in kueue.cluster_queues
    }
    return [
        Draft(
            key=key,
            parent=tree.parents.get(key),
            fields={"namespaceSelector": selectors.get(key)},
            entries=entries[key],
        )
        for key in tree.members()
    ]


def _tree_of(kueue: KueueObjects, resources: Resources) -> tuple[Tree, Mapping[Key, Quotas]]:
    parents = {Key(CLUSTER_QUEUE, each.name): each.cohort for each in kueue.cluster_queues}
    for each in kueue.cohorts:
        parents[Key(COHORT, each.name)] = (each.spec and each.spec.parent_name) or ""
    tree = tree_of(parents.items())
    quotas: dict[Key, Quotas] = {}
    for one in kueue.members:
        key = Key(one.kind, one.name)
        groups = (one.spec and one.spec.resource_groups) or ()
        quotas[key] = quotas_of(one.about, groups, resources, has_parent=key in tree.parents)
    known = {key: found.by_definition for key, found in quotas.items()}
    return replace(tree, quotas=known), quotas


def _weights(kueue: KueueObjects) -> Iterator[tuple[Key, int]]:
    for each in kueue.members:
        sharing = each.spec and each.spec.fair_sharing
        if sharing and sharing.weight is not None:
            yield Key(each.kind, each.name), sharing.weight


def _of_weights(
    kueue: KueueObjects, entries: Mapping[Key, tuple[Entry, ...]], scale: WeightScale
) -> Iterator[Finding]:
    for key, weight in _weights(kueue):
        weighted = [entry for entry in entries[key] if entry.weight is not None]
        sentences = {
            NOT_ENABLED: not kueue.shares_fairly,
            WEIGHT_0: kueue.shares_fairly and not weight,
            SEVERAL_ENTRIES: kueue.shares_fairly and len(weighted) > 1,
            NO_ENTRY: bool(weight) and kueue.shares_fairly and not weighted,
            LARGE_WEIGHT: not scale.is_exact(weight),
        }
        for sentence in (sentence for sentence, holds in sentences.items() if holds):
            yield Finding(str(key), ("spec.fairSharing.weight",), sentence)


def _of_cycles(tree: Tree) -> Iterator[Finding]:
    for key in sorted(tree.cut):
        yield Finding(str(key), ("spec.parentName",), CYCLE)


def _of_cluster_queues(kueue: KueueObjects, quotas: Mapping[Key, Quotas]) -> Iterator[Finding]:
    namespaces = namespaces_of(kueue.local_queues)
    for queue in kueue.cluster_queues:
        has_devices = bool(quotas[Key(CLUSTER_QUEUE, queue.name)].by_definition)
        yield from unread_findings(queue, reasons.CLUSTER_QUEUES)
        yield from reasons.preemption_findings(queue, has_devices=has_devices)
        yield from too_many(queue, namespaces.get(queue.name, []))


def _of_others(kueue: KueueObjects) -> Iterator[Finding]:
    for cohort in kueue.cohorts:
        yield from unread_findings(cohort, reasons.COHORTS)
    for queue in kueue.local_queues:
        yield from unread_findings(queue, reasons.LOCAL_QUEUES)
    for flavor in kueue.flavors:
        yield from unread_findings(flavor, reasons.FLAVORS)
    for configuration in kueue.configurations:
        yield from unread_findings(configuration, reasons.CONFIGURATIONS)
        if configuration.fair_sharing is not None:
            yield reasons.PREEMPTION_STRATEGIES
