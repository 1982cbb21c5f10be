"""The changes for one Configuration of Akri's, its Instances, and the users of its devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from driver.api import NodeName, ValueReference
from driver.brokers.workloads import FIELDS, problems
from driver.configurations.configurations import Verdict
from driver.device_ids import configuration_resource, instance_resource, name_problems
from driver.instances.slots.slots import InstanceSlots, instance_slots, usage_problems
from driver.running.from_akri.values import Release
from kube.shapes.pods import NO_RESOURCES, NO_SPEC, Pod, Spec
from kube.shapes.reading import read_as

JsonObject = Mapping[str, Any]

SHOWN = 3
"""Most names of one kind that are written out."""


class Effect(StrEnum):
    """The kind of a change."""

    KEPT = "kept"
    CHANGED = "changed"
    TO_DO = "to do"
    """The administrator has to act, before or after the installation of Moorage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Akri:
    """The objects of Akri in a cluster.

    Attributes:
        configurations: Each Configuration as stored, and the result of its validation.
        workloads: Akri's own DaemonSets and Deployments, each with its kind.
        pods: All pods of the cluster.
        releases: Helm releases of Akri's chart.
        unread: Sentences about objects that could not be read.
        own_handlers: Names of handlers that Moorage has.
        has_dra: Whether Moorage offers devices through DRA in this cluster by default.
    """

    definitions: Sequence[JsonObject] = ()
    configurations: Sequence[tuple[JsonObject, Verdict]] = ()
    instances: Sequence[JsonObject] = ()
    workloads: Sequence[tuple[str, JsonObject]] = ()
    pods: Sequence[JsonObject] = ()
    releases: Sequence[Release] = ()
    unread: Sequence[str] = ()
    own_handlers: frozenset[str] = frozenset()
    has_dra: bool = False


def configuration_changes(
    akri: Akri, body: JsonObject, verdict: Verdict, holder: Verdict
) -> Iterator[tuple[Effect, str]]:
    spec = body.get("spec") or {}
    resource = configuration_resource(verdict.name)
    if problems := _refused(verdict, holder):
        yield Effect.TO_DO, f"It would not be accepted: {problems}"
    slots = [
        one
        for one in map(instance_slots, akri.instances)
        if (one.configuration, one.namespace) == (verdict.name, verdict.namespace)
    ]
    if configuration := verdict.configuration:
        yield Effect.KEPT, _offered(resource, configuration.capacity, slots)
        for problem in name_problems(configuration):
            yield Effect.CHANGED, f"The device plugin does not offer its devices. {problem}"
        if configuration.capacity > 1 and spec.get("uniqueDevices") is None:
            yield (
                Effect.CHANGED,
                f"A node uses an Instance once through {resource};"
                " uniqueDevices: false lets it use all slots.",
            )
        yield from _discovery(configuration.handler, akri.own_handlers)
        yield from _properties(configuration.discovery_properties)
    yield from _held(slots)
    yield from _users(akri, resource, slots)
    yield from _workloads(verdict, akri.pods, spec)
    yield from _remaining(body, akri)


def _refused(verdict: Verdict, holder: Verdict) -> str:
    if holder.uid != verdict.uid:
        return f"the older Configuration {holder.namespace}/{holder.name} holds this name."
    return " ".join(map(str, verdict.problems))


def _offered(resource: str, capacity: int, slots: Sequence[InstanceSlots]) -> str:
    devices = _names([one.name for one in slots], "Instance")
    return f"{resource}, capacity {capacity}; {devices}."


def _discovery(handler: str, own: frozenset[str]) -> Iterator[tuple[Effect, str]]:
    if handler not in own:
        said = f"Its devices are discovered while your handler {handler!r} is registered in"
        yield Effect.TO_DO, f"{said} driver.node.host.discoveryHandlers, /var/lib/akri."
    elif handler in ("onvif", "opcua"):
        said = "Moorage contacts devices at the address that they answer from; others must be in"
        yield Effect.CHANGED, f"{said} driver.networkHandlers.discoveryNetworks."


def _properties(
    properties: Mapping[str, str | ValueReference],
) -> Iterator[tuple[Effect, str]]:
    kept = {
        f"{v.kind} {v.namespace}/{v.name}"
        for v in properties.values()
        if isinstance(v, ValueReference)
    }
    if kept:
        said = f"The driver may not read {_names(sorted(kept), 'object')} yet"
        yield Effect.TO_DO, f"{said}: moorage-driver permissions prints the Role."


def _held(slots: Sequence[InstanceSlots]) -> Iterator[tuple[Effect, str]]:
    held = sum(len(one.holders) for one in slots)
    if held:
        of = sum(one.capacity for one in slots)
        yield Effect.KEPT, f"{held} of {of} slots are held and stay so."
    for one in slots:
        for sentence in usage_problems(one, NodeName("")):
            yield Effect.TO_DO, f"deviceUsage of {one.name}: {sentence}."


def _users(
    akri: Akri, resource: str, slots: Sequence[InstanceSlots]
) -> Iterator[tuple[Effect, str]]:
    if any_device := _asking(akri.pods, {resource}):
        yield Effect.KEPT, f"Requests for any of its devices: {_names(any_device, 'pod')}."
    if not (one_device := _asking(akri.pods, {instance_resource(one.name) for one in slots})):
        return
    said = f"Requests for one certain device: {_names(one_device, 'pod')}"
    if akri.has_dra:
        need = "in this cluster they need driver.shared.instanceClasses: true"
        yield Effect.TO_DO, f"{said}; {need}."
    else:
        yield Effect.KEPT, f"{said}."


def _asking(pods: Iterable[JsonObject], resources: set[str]) -> list[str]:
    """Names of the pods with a container that requests one of these resources."""
    return [
        _name(pod)
        for pod in (read_as(Pod, obj) for obj in pods)
        if not _is_broker(pod) and not resources.isdisjoint(_limits(pod.spec or NO_SPEC))
    ]


def _limits(spec: Spec) -> Iterator[str]:
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        yield from (container.resources or NO_RESOURCES).limits or ()


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _is_broker(pod: Pod) -> bool:
    return (pod.metadata.labels or {}).get("controller") == "akri.sh"


def _workloads(
    verdict: Verdict, pods: Iterable[JsonObject], spec: JsonObject
) -> Iterator[tuple[Effect, str]]:
    brokers = [
        _name(pod)
        for pod in (read_as(Pod, obj) for obj in pods)
        if _is_broker(pod)
        and (pod.metadata.labels or {}).get("akri.sh/configuration") == verdict.name
    ]
    if not any(spec.get(name) for name in FIELDS):
        return
    if found := tuple(problems(spec)):
        yield Effect.TO_DO, f"Its brokers would not be made: {' '.join(map(str, found))}"
        return
    said = f"Moorage makes its brokers ({_names(brokers, 'pod')} now) and Services"
    yield Effect.TO_DO, f"{said} once brokers.namespaces has {verdict.namespace}."


def _remaining(body: JsonObject, akri: Akri) -> Iterator[tuple[Effect, str]]:
    metadata = body["metadata"]
    which = f"{metadata['name']} --namespace {metadata['namespace']}"
    release = (metadata.get("annotations") or {}).get("meta.helm.sh/release-name")
    if release in {one.name for one in akri.releases}:
        said = f"Helm deletes it with the release {release}: keep it by kubectl get akric"
        yield Effect.TO_DO, f"{said} {which} --output yaml, or by the values of Moorage's chart."
    # The finalizer of an agent is the name of its node; other finalizers have a domain.
    if any("/" not in one for one in metadata.get("finalizers") or ()):
        patch = """--type=merge --patch '{"metadata":{"finalizers":null}}'"""
        yield Effect.TO_DO, f"Once the agents are gone: kubectl patch akric {which} {patch}"


def _names(names: Sequence[str], kind: str) -> str:
    """The number of names, and the first of them."""
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    return f"{len(names)} {kind}{'' if len(names) == 1 else 's'}{': ' if names else ''}{shown}"
