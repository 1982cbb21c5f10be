"""What is known of a running Moorage, and what a look at it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from kube.shapes.events import Event
from kube.shapes.metadata import named_metadata
from kube.shapes.reading import JsonObject


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not for ever, or not as whoever runs it may believe."""
    ERROR = "error"
    """Something does not work, or is not enforced."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part.

    Attributes:
        part: What it is about, such as `policies`.
        said: One sentence.
        mend: What to do; empty if there is nothing.
    """

    level: Level
    part: str
    said: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read.

    Attributes:
        why: The API server's words.
        absent: Whether there is no such kind or object; else nobody knows.
    """

    why: str
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Permission:
    """What an account may have to do: a verb, and a resource as rules of RBAC name it."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


Objects = tuple[JsonObject, ...] | Unread

Decided = tuple[str, str, str]
"""Namespace, name and UID of a pod."""


class DecidedPod(NamedTuple):
    """What tells who decided a pod.

    Attributes:
        is_bound: Whether it has a node.
        is_ours: Whether it bears the annotation of the plugin's binding.
        asks_for_devices: Whether it names a claim or an extended resource.
    """

    identity: Decided
    scheduler: str
    is_bound: bool
    is_ours: bool
    asks_for_devices: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was read.

    Attributes:
        namespace: Where the release is.
        git_version: Of the API server, such as `v1.36.3`.
        server_time: The API server's clock, and `own_time` this host's at that moment.
        serves_dra: Whether there is `resource.k8s.io/v1`.
        lease: kube-scheduler's; `lease_name` is its namespace and name.
        scheduler_events: What other kube-schedulers of the expected scheduler names told of late.
        rival_leases: The Leases by which such ones were elected, but for `lease`.
        decided_pods: Those that the Events say other kube-schedulers decided.
        configuration: kube-scheduler's, parsed; `configuration_source` says where it was found.
        expected: What `print-config` prints, parsed.
        denied: What the plugin's account is not allowed, though it needs it.
        endpoints: EndpointSlices of the webhook's Service.
        pods: Of the release, in all its namespaces.
        daemon_sets: Likewise.
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


def unread(part: str, found: Unread) -> Finding:
    """That something was not looked at."""
    return Finding(Level.WARNING, part, f"Not looked at: {found.why}")


def look_at(verb: str, namespace: str, name: str) -> str:
    """A command that shows more of the pods of one name."""
    return f"kubectl {verb} --namespace {namespace} --selector app.kubernetes.io/name={name}"


def name_of(body: JsonObject) -> str:
    return named_metadata(body).name


def named(found: tuple[JsonObject, ...], name: str) -> JsonObject | None:
    return next((body for body in found if name_of(body) == name), None)
