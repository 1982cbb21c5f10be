"""What is read of an installation of Moorage, and the findings about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from kube.shapes.events import Event
from kube.shapes.metadata import named_metadata
from kube.shapes.reading import JsonObject


class Level(StrEnum):
    """How severe a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but may stop working, or may not do what the administrator expects."""
    ERROR = "error"
    """Something does not work, or is not enforced."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one part.

    Attributes:
        part: The part, such as `policies`.
        said: One sentence.
        mend: What to do; "" if there is nothing to do.
    """

    level: Level
    part: str
    said: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A part that could not be read.

    Attributes:
        why: The API server's message.
        absent: Whether the kind or object does not exist; else that is not known.
    """

    why: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """A right that an account may need: a verb, and a resource as RBAC rules name it."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


Objects = tuple[JsonObject, ...] | Unread

Decided = tuple[str, str, str]
"""Namespace, name and UID of a pod."""


class DecidedPod(NamedTuple):
    """What says which scheduler decided a pod.

    Attributes:
        is_bound: Whether it has a node.
        is_ours: Whether it has the annotation of the plugin's binding.
        asks_for_devices: Whether it names a claim or an extended resource.
    """

    identity: Decided
    scheduler: str
    is_bound: bool
    is_ours: bool
    asks_for_devices: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All that was read.

    Attributes:
        namespace: The release's namespace.
        git_version: The API server's version, such as `v1.36.3`.
        server_time: The API server's clock; `own_time` is this host's at that moment.
        serves_dra: Whether `resource.k8s.io/v1` is served.
        serves_composite_groups: Whether CompositePodGroups are served.
        lease: kube-scheduler's Lease; `lease_name` is its namespace and name.
        scheduler_events: Recent Events of other kube-schedulers with the expected names.
        rival_leases: The Leases with which they were elected, except `lease`.
        decided_pods: The pods that these Events are about.
        configuration: kube-scheduler's, parsed; `configuration_source` says where it was found.
        expected: What `print-config` prints, parsed.
        denied: The rights that the plugin's account needs and does not have.
        endpoints: EndpointSlices of the webhook's Service.
        pods: The release's pods, in all its namespaces.
        daemon_sets: The release's DaemonSets, in all its namespaces.
        invalid_selectors: The selectors of Queues' entries that are no valid CEL.
        classes: DeviceClasses; `slices` and `claims` are the other kinds of DRA.
    """

    namespace: str
    git_version: str
    server_time: datetime
    own_time: datetime
    serves_dra: bool
    definitions: Objects
    policies: Objects
    bindings: Objects
    validating: Objects
    mutating: Objects
    endpoints: Objects
    lease_name: tuple[str, str]
    lease: JsonObject | Unread
    scheduler_events: tuple[Event, ...] | Unread
    rival_leases: Objects
    configuration: Any
    configuration_source: str
    expected: Any
    pods: Objects
    daemon_sets: Objects
    queues: Objects
    classes: Objects
    slices: Objects
    claims: Objects
    account: str
    denied: tuple[Permission, ...] | Unread = field(default=())
    decided_pods: tuple[DecidedPod, ...] | Unread = ()
    serves_composite_groups: bool = False
    invalid_selectors: frozenset[str] | Unread = frozenset()


def unread(part: str, found: Unread) -> Finding:
    """The finding that a part could not be checked."""
    return Finding(Level.WARNING, part, f"Not checked: {found.why}")


def look_at(verb: str, namespace: str, name: str) -> str:
    """A kubectl command that prints more about the pods of one name."""
    return f"kubectl {verb} --namespace {namespace} --selector app.kubernetes.io/name={name}"


def name_of(body: JsonObject) -> str:
    return named_metadata(body).name


def named(found: tuple[JsonObject, ...], name: str) -> JsonObject | None:
    return next((body for body in found if name_of(body) == name), None)
