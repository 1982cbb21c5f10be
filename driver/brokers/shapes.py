"""Shapes of the fields of a Configuration that say what runs for its Instances.

The API server takes any PodSpec, JobSpec and ServiceSpec there. Only what this room itself reads is
named here; the API server judges the rest when the object is created.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class Resources(msgspec.Struct, frozen=True):
    """The `resources` of a container."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None
    claims: list[Any] | None = None


class Container(msgspec.Struct, frozen=True):
    """A container, or an init container."""

    resources: Resources | None = None


class NodeSelectorTerm(msgspec.Struct, frozen=True, rename="camel"):
    """An alternative of a node selector."""

    match_fields: list[Any] | None = None


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """A node selector of a node affinity."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The `nodeAffinity` of an affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """The `affinity` of a PodSpec."""

    node_affinity: NodeAffinity | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A PodSpec."""

    containers: Annotated[list[Container], msgspec.Meta(min_length=1)]
    init_containers: list[Container] | None = None
    resource_claims: list[Any] | None = None
    affinity: Affinity | None = None


class TemplateMetadata(msgspec.Struct, frozen=True):
    """Metadata of the pods of a Job."""

    labels: dict[str, Any] | None = None


class PodTemplate(msgspec.Struct, frozen=True):
    """The template of a Job."""

    spec: PodSpec
    metadata: TemplateMetadata | None = None


class JobSpec(msgspec.Struct, frozen=True):
    """A JobSpec."""

    template: PodTemplate


class BrokerSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The `brokerSpec` of a Configuration."""

    broker_pod_spec: PodSpec | None = None
    broker_job_spec: JobSpec | None = None


class ServiceSpec(msgspec.Struct, frozen=True):
    """A ServiceSpec."""

    selector: dict[str, Any] | None = None


class WorkloadFields(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a Configuration's spec about brokers and Services."""

    broker_spec: BrokerSpec | None = None
    instance_service_spec: ServiceSpec | None = None
    configuration_service_spec: ServiceSpec | None = None
    max_brokers: int | None = None
