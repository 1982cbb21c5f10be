"""What a Configuration wants to run for its Instances: its `brokerSpec`, and its Services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from driver.api import Problem
from driver.brokers.pod_specs import slots_problems
from driver.brokers.shapes import WorkloadFields
from kube.shapes.metadata import StoredMetadata, metadata_of
from kube.shapes.reading import JsonObject, UnreadableError, read_as

MOST_BROKERS = 1000
"""The most Pods or Jobs of a Configuration that does not set `spec.maxBrokers`."""

FIELDS = ("brokerSpec", "instanceServiceSpec", "configurationServiceSpec")
"""The fields of a Configuration's spec that ask for something to run."""

_POD, _JOB = "brokerPodSpec", "brokerJobSpec"
_NOT_COPIED = ("app.kubernetes.io/", "helm.sh/")
"""Prefixes of labels that say what the Configuration is, and not what its brokers are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """What one Configuration wants; all parts are as it has them.

    Attributes:
        namespace: Of the Configuration, its Instances, and all that is made for them.
        pod: A PodSpec; None for no broker Pods.
        job: A JobSpec; None for no broker Jobs.
        instance_service: A ServiceSpec; None for no Service for each Instance.
        configuration_service: A ServiceSpec; None for no Service for all Instances.
        labels: Labels of the Configuration that its Pods and Jobs have, too, such as its queue.
        most: The most Pods or Jobs.
    """

    namespace: str
    configuration: str
    uid: str
    generation: int
    pod: JsonObject | None = None
    job: JsonObject | None = None
    instance_service: JsonObject | None = None
    configuration_service: JsonObject | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    most: int = MOST_BROKERS

    @property
    def pod_spec(self) -> JsonObject | None:
        """The spec of the broker Pods, or of the pods of the broker Jobs."""
        return self.job["template"]["spec"] if self.job else self.pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a Configuration says about brokers and Services.

    Attributes:
        workloads: What is to run; None for nothing, or if there are problems.
        problems: What keeps it from running.
    """

    namespace: str
    name: str
    workloads: Workloads | None = None
    problems: tuple[Problem, ...] = ()


def wanted(body: JsonObject) -> Wanted:
    """Read a Configuration."""
    metadata, spec = metadata_of(body), body.get("spec") or {}
    nothing = Wanted(namespace=metadata.namespace or "", name=metadata.name)
    if not any(spec.get(name) for name in FIELDS):
        return nothing
    if found := tuple(problems(spec)):
        return replace(nothing, problems=found)
    return replace(nothing, workloads=_workloads(metadata, body))


def _workloads(metadata: StoredMetadata, body: JsonObject) -> Workloads:
    spec = body["spec"]
    broker = spec.get("brokerSpec") or {}
    return Workloads(
        namespace=metadata.namespace or "",
        configuration=metadata.name,
        uid=metadata.uid,
        generation=body["metadata"].get("generation", 0),
        pod=broker.get(_POD),
        job=broker.get(_JOB),
        instance_service=spec.get("instanceServiceSpec"),
        configuration_service=spec.get("configurationServiceSpec"),
        labels={
            name: value
            for name, value in (metadata.labels or {}).items()
            if not name.startswith(_NOT_COPIED)
        },
        most=MOST_BROKERS if spec.get("maxBrokers") is None else spec["maxBrokers"],
    )


def problems(spec: JsonObject) -> Iterator[Problem]:
    """What keeps the workloads of a Configuration's spec from being made.

    Only what this room itself reads is checked; the API server judges the rest when it is created.
    """
    try:
        read_as(WorkloadFields, spec)
    except UnreadableError as error:
        yield Problem(f"spec.{error.path}".rstrip("."), error.message)
        return
    broker = spec.get("brokerSpec") or {}
    pod, job = broker.get(_POD), broker.get(_JOB)
    if pod and job:
        yield Problem("spec.brokerSpec", f"Set {_POD} or {_JOB}, not both.")
    elif job:
        found = slots_problems(job["template"]["spec"])
        yield from _below(f"spec.brokerSpec.{_JOB}.template.spec", found)
    elif pod:
        yield from _below(f"spec.brokerSpec.{_POD}", slots_problems(pod))


def _below(path: str, found: Iterable[Problem]) -> Iterator[Problem]:
    return (Problem(f"{path}.{each.path}", each.message) for each in found)
