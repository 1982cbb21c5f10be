"""Documents as Queues: which objects are in them, and what each becomes.

A mapping comes from where its kind is defined, see `kai.kai_models` and `kueue.kueue_models`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scheduler_plugin.importing.device_classes import DeviceClass, DeviceClasses, by_resource
from scheduler_plugin.importing.documents import JsonObject, group_of, objects_of
from scheduler_plugin.importing.drafts import Draft, Key, body, ordered, queue_names, renamed
from scheduler_plugin.importing.findings import Finding, merged
from scheduler_plugin.importing.foreign import (
    ForeignObject,
    NotValidError,
    parsed,
    shown_name,
)
from scheduler_plugin.importing.kai import kai_models
from scheduler_plugin.importing.kai.kai_queues import KaiObjects, kai_drafts
from scheduler_plugin.importing.kueue import kueue_models
from scheduler_plugin.importing.kueue.kueue_queues import KueueObjects, kueue_drafts
from scheduler_plugin.importing.kueue.namespaces import local_queue_findings
from scheduler_plugin.models import queue_problems

KINDS: Mapping[tuple[str, str], type[ForeignObject]] = {
    (kai_models.GROUP, "Queue"): kai_models.KaiQueue,
    (kai_models.GROUP, "AccountedResource"): kai_models.AccountedResource,
    (kueue_models.GROUP, "ClusterQueue"): kueue_models.ClusterQueue,
    (kueue_models.GROUP, "Cohort"): kueue_models.Cohort,
    (kueue_models.GROUP, "LocalQueue"): kueue_models.LocalQueue,
    (kueue_models.GROUP, "ResourceFlavor"): kueue_models.ResourceFlavor,
    (kueue_models.CONFIGURATION_GROUP, "Configuration"): kueue_models.Configuration,
    ("resource.k8s.io", "DeviceClass"): DeviceClass,
}
"""The kinds that are read, by group and kind, in any version."""

NOT_READ = "Objects of this kind are not read."
TWICE = "The object is given more than once. The last one counts."

Kind = TypeVar("Kind", bound=ForeignObject)


@dataclass(frozen=True, slots=True)
class Translation:
    """The result.

    Attributes:
        queues: Bodies of Queues, parents first.
        findings: What they do not say.
    """

    queues: tuple[Mapping[str, Any], ...]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Objects:
    """The parsed objects, and what was found while they were parsed."""

    known: dict[tuple[str, str, str], ForeignObject] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def of(self, kind: type[Kind]) -> tuple[Kind, ...]:
        return tuple(each for each in self.known.values() if isinstance(each, kind))


def translated(
    documents: Iterable[object], given: Mapping[str, str], gpu_class: str = ""
) -> Translation:
    """The Queues that say what the documents do.

    Args:
        documents: Parsed YAML or JSON.
        given: DeviceClasses by the resource that they stand for.
        gpu_class: The DeviceClass of whole GPUs.

    Raises:
        NotValidError: A document, or one of its objects, cannot be read.
    """
    found = _parsed(objects_of(documents))
    classes = DeviceClasses(given, by_resource(found.of(DeviceClass)), gpu_class)
    kai, of_kai = kai_drafts(_kai(found), classes)
    kueue, of_kueue = kueue_drafts(_kueue(found), classes)
    drafts = [*kai, *kueue]
    names = queue_names(_keys(drafts))
    findings = [*found.findings, *renamed(names), *of_kai, *of_kueue]
    cluster_queues = {each.name: each for each in found.of(kueue_models.ClusterQueue)}
    for queue in found.of(kueue_models.LocalQueue):
        findings += local_queue_findings(queue, cluster_queues, names)
    return Translation(_bodies(drafts, names), merged(findings))


def _kai(found: _Objects) -> KaiObjects:
    return KaiObjects(found.of(kai_models.KaiQueue), found.of(kai_models.AccountedResource))


def _kueue(found: _Objects) -> KueueObjects:
    return KueueObjects(
        cluster_queues=found.of(kueue_models.ClusterQueue),
        cohorts=found.of(kueue_models.Cohort),
        local_queues=found.of(kueue_models.LocalQueue),
        flavors=found.of(kueue_models.ResourceFlavor),
        configurations=found.of(kueue_models.Configuration),
    )


def _keys(drafts: Iterable[Draft]) -> Iterator[Key]:
    """All that have a name: Queues, and then parents that are elsewhere."""
    known = list(drafts)
    yield from (draft.key for draft in known)
    yield from (draft.parent for draft in known if draft.parent)


def _parsed(bodies: Iterable[JsonObject]) -> _Objects:
    found, problems = _Objects(), list[str]()
    for each in bodies:
        kind = KINDS.get((group_of(each), str(each["kind"])))
        if kind is None:
            found.findings.append(Finding(shown_name(each), (), NOT_READ))
            continue
        try:
            _add(found, parsed(kind, each))
        except NotValidError as error:
            problems += error.problems
    if problems:
        raise NotValidError(problems)
    return found


def _add(found: _Objects, one: ForeignObject) -> None:
    key = (type(one).__name__, one.metadata.namespace, one.name)
    if not one.name and not isinstance(one, kueue_models.Configuration):
        raise NotValidError([f"{one.about} metadata.name: Field required."])
    if not one.metadata.namespace and isinstance(one, kueue_models.LocalQueue):
        raise NotValidError([f"{one.about} metadata.namespace: Field required."])
    if found.known.pop(key, None):
        found.findings.append(Finding(one.about, ("metadata.name",), TWICE))
    found.known[key] = one


def _bodies(drafts: Iterable[Draft], names: Mapping[Key, str]) -> tuple[Mapping[str, Any], ...]:
    """The Queues.

    Raises:
        NotValidError: A Queue would not be valid.
    """
    found = tuple((draft, body(draft, names)) for draft in ordered(drafts))
    problems = [
        f"{draft.key}: the Queue would not be valid: {problem}"
        for draft, each in found
        for problem in queue_problems(each)
    ]
    if problems:
        raise NotValidError(problems)
    return tuple(each for _, each in found)
