"""ResourceClaims and ResourceClaimTemplates: the parts that decide who is charged what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple, NewType

from driver.api import DRIVER_NAME
from kube.shapes.claims import (
    NO_EXACT,
    NO_STATUS,
    Asked,
    Claim,
    Consumer,
    Exact,
    Given,
    Spec,
    Status,
    Template,
)
from kube.shapes.classes import Selector
from kube.shapes.metadata import NO_METADATA, Metadata
from kube.shapes.reading import (
    JsonObject,
    UnreadableError,
    own_text,
    read_as,
)
from kube.shapes.selection import Toleration
from scheduler_plugin.objects.names import (
    EVICT_FOREIGN_ANNOTATION,
    GROUP,
    NO_POD,
    NO_QUEUE,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
    ClaimUid,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.node_selection import NodeTerms, selected_nodes
from scheduler_plugin.objects.requests import read_quantity, whole

ClassName = NewType("ClassName", str)


class DeviceId(NamedTuple):
    """A device, wherever slices or allocations name it."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"device {self.driver}/{self.pool}/{self.name}"


SLOTS = "slots"
"""Capacity of the driver's devices that several requests use at one time."""

SLOTS_NAMES = (SLOTS, f"{GROUP}/{SLOTS}")
"""A capacity's name may be qualified with the driver's domain, which it belongs to anyway."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """`exactly` of a request, or one entry of its `firstAvailable`.

    Attributes:
        name: The result's `request`: the request, or `<request>/<subrequest>`.
        count: Devices; None for allocationMode All.
        slots: Slots of each device; at least 1.
        problem: Why what it says of slots is none of them, as a sentence; "" where it is.

    No queue is charged by the rest. Two alternatives that differ in nothing else are equal, so that
    pods that ask for the same are treated alike, whichever devices of a class they select.

    Attributes:
        selectors: CEL, all of which a device satisfies; None for what is no CEL.
        names_slots: Whether it says how many slots, which only a device with slots can have.
        odd_capacity: Other capacity that it asks for, by name.
    """

    name: str
    device_class: ClassName
    count: int | None = 1
    slots: int = 1
    admin_access: bool = False
    problem: str = ""
    selectors: tuple[str | None, ...] = field(default=(), compare=False)
    tolerations: tuple[Toleration, ...] = field(default=(), compare=False)
    names_slots: bool = field(default=False, compare=False)
    odd_capacity: tuple[str, ...] = field(default=(), compare=False)


class ClaimConstraint(NamedTuple):
    """What devices of a claim have to agree about.

    Attributes:
        requests: Those that it is about, or alternatives of theirs; () for all.
        attribute: "" for a constraint of another kind than `matchAttribute`.
    """

    requests: tuple[str, ...]
    attribute: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a claim: its alternatives, of which one is allocated."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One allocated device.

    Attributes:
        slots: The slots that it consumed, of our driver's devices at least 1; None where its driver
            does not count them.
        is_part: Whether other claims may have parts of the same device at the same time.
        pool: Of its driver, in which the device's name means this one.
    """

    request: str
    driver: str
    slots: int | None = None
    admin_access: bool = False
    pool: str = ""
    device: str = ""
    is_part: bool = False

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """A ResourceClaim.

    Attributes:
        resource_version: For a write's precondition; two views that differ in nothing else are
            equal, since nothing that counts has changed.
        label: The queue label as it stands; "" for none. Whose claim it is: `owners`.
        owner_pod: The pod for which the binder wrote the label; "" where a user set it.
        owner_left_at: The annotation as it stands; "" for none.
        results: None while the claim is not allocated.
        nodes: Where its devices can be used, as its allocation says; None where it says nothing.
        reserved_for: UIDs of the consumers that are pods, the earliest first.
        other_consumers: How many consumers are something else.
        is_deleting: Whether it is on its way out: it goes once nobody uses it.
        constraints: In the order of its spec, which never changes, as all of its spec.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str = field(default="", compare=False)
    label: QueueName = NO_QUEUE
    owner_pod: PodUid = NO_POD
    evict_foreign: bool = False
    owner_left_at: str = ""
    requests: tuple[Request, ...] = ()
    results: tuple[Result, ...] | None = None
    reserved_for: tuple[PodUid, ...] = ()
    other_consumers: int = 0
    is_deleting: bool = False
    constraints: tuple[ClaimConstraint, ...] = field(default=(), compare=False)
    nodes: NodeTerms | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def is_allocated(self) -> bool:
        return self.results is not None

    @property
    def classes(self) -> frozenset[ClassName]:
        return frozenset(a.device_class for r in self.requests for a in r.alternatives)

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """Those that it has, each once; what is lent for administration is nobody's."""
        own = (r.device_id for r in self.results or () if not r.admin_access)
        return tuple(dict.fromkeys(own))

    @property
    def classes_asked_whole(self) -> frozenset[ClassName]:
        """The classes for which what it costs at most depends on the published devices."""
        choices = (a for r in self.requests for a in r.alternatives)
        return frozenset(a.device_class for a in choices if a.count is None)

    def __str__(self) -> str:
        return f"ResourceClaim {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplateView:
    """A ResourceClaimTemplate."""

    namespace: str
    name: str
    label: QueueName = NO_QUEUE
    requests: tuple[Request, ...] = ()
    constraints: tuple[ClaimConstraint, ...] = field(default=(), compare=False)

    def claim(self, pod: str, entry: str) -> ClaimView:
        """The claim that will be made of it for a pod, before it exists: without a UID."""
        return ClaimView(
            namespace=self.namespace,
            name=f"{pod}-{entry}",
            uid=ClaimUid(""),
            label=self.label,
            requests=self.requests,
            constraints=self.constraints,
        )


def claim_view(obj: JsonObject | Claim, *, queue_label: str) -> ClaimView:
    """Parse a ResourceClaim of resource.k8s.io/v1."""
    claim = read_as(Claim, obj)
    metadata, status = claim.metadata or NO_METADATA, claim.status or NO_STATUS
    annotations = metadata.annotations or {}
    consumers = tuple(map(_consumer, status.reserved_for or ()))
    return ClaimView(
        namespace=intern(metadata.namespace or ""),
        name=own_text(metadata.name, "metadata.name"),
        uid=ClaimUid(own_text(metadata.uid, "metadata.uid")),
        resource_version=metadata.resource_version or "",
        label=_label(metadata, queue_label),
        owner_pod=PodUid(annotations.get(OWNER_POD_ANNOTATION, "")),
        evict_foreign=annotations.get(EVICT_FOREIGN_ANNOTATION) == "true",
        owner_left_at=annotations.get(OWNER_LEFT_AT_ANNOTATION, ""),
        requests=_requests(claim.spec, "spec"),
        results=_results(status),
        reserved_for=tuple(uid for uid in consumers if uid),
        other_consumers=consumers.count(NO_POD),
        is_deleting=metadata.deletion_timestamp is not None,
        constraints=_constraints(claim.spec),
        nodes=_nodes(status),
    )


def claim_template_view(obj: JsonObject, *, queue_label: str) -> ClaimTemplateView:
    """Parse a ResourceClaimTemplate of resource.k8s.io/v1."""
    template = read_as(Template, obj)
    metadata = template.metadata or NO_METADATA
    of_claim = template.spec.metadata if template.spec else None
    spec = template.spec.spec if template.spec else None
    return ClaimTemplateView(
        namespace=intern(metadata.namespace or ""),
        name=own_text(metadata.name, "metadata.name"),
        label=_label(of_claim or NO_METADATA, queue_label),
        requests=_requests(spec, "spec.spec"),
        constraints=_constraints(spec),
    )


def _label(metadata: Metadata, key: str) -> QueueName:
    return QueueName(intern((metadata.labels or {}).get(key, "")))


def _requests(spec: Spec | None, path: str) -> tuple[Request, ...]:
    asked = spec.devices.requests if spec is not None and spec.devices is not None else None
    return tuple(
        _request(request, f"{path}.devices.requests[{number}]")
        for number, request in enumerate(asked or ())
    )


def _constraints(spec: Spec | None) -> tuple[ClaimConstraint, ...]:
    found = spec.devices.constraints if spec is not None and spec.devices is not None else None
    if not found:
        return ()  # As for most claims, of which thousands are read.
    return tuple(
        ClaimConstraint(tuple(map(intern, each.requests or ())), intern(each.match_attribute or ""))
        for each in found
    )


def _request(asked: Asked, path: str) -> Request:
    name = intern(asked.name or "")
    alternatives = tuple(
        _alternative(
            choice, f"{path}.firstAvailable[{number}]", intern(f"{name}/{choice.name or ''}")
        )
        for number, choice in enumerate(asked.first_available or ())
    )
    exactly = asked.exactly or NO_EXACT
    return Request(alternatives or (_alternative(exactly, f"{path}.exactly", name),))


def _alternative(exact: Exact, path: str, name: str) -> Alternative:
    capacity = exact.capacity.requests if exact.capacity is not None else None
    asked = _slots(capacity) if capacity else None
    count = exact.count if exact.count is not None else 1
    return Alternative(
        name=name,
        device_class=ClassName(intern(exact.device_class_name or "")),
        count=None if exact.allocation_mode == "All" else max(0, count),
        slots=max(1, whole(asked[1]) or 1) if asked else 1,
        admin_access=bool(exact.admin_access),
        problem=_problem(*asked, f"{path}.capacity.requests") if asked else "",
        selectors=expressions(exact.selectors) if exact.selectors else (),
        tolerations=tuple(exact.tolerations) if exact.tolerations else (),
        names_slots=asked is not None,
        odd_capacity=_odd(capacity) if capacity else (),
    )


def expressions(selectors: Iterable[Selector]) -> tuple[str | None, ...]:
    """The CEL of selectors, of a class or of a request; None for one of another kind.

    Claims that are made of one template share the texts.
    """
    found = (each.cel.expression if each.cel is not None else None for each in selectors)
    return tuple(None if text is None else intern(text) for text in found)


def _slots(amounts: Mapping[str, object]) -> tuple[str, object] | None:
    """Under which name slots are given, and what is written there."""
    return next(((name, amounts[name]) for name in SLOTS_NAMES if name in amounts), None)


def _odd(capacity: Iterable[str]) -> tuple[str, ...]:
    return tuple(intern(name) for name in capacity if name not in SLOTS_NAMES)


def _problem(name: str, value: object, path: str) -> str:
    try:
        read_quantity(value, f"{path}[{name}]", whole)
    except UnreadableError as error:
        return str(error)
    return ""


def _results(status: Status) -> tuple[Result, ...] | None:
    if status.allocation is None:
        return None
    devices = status.allocation.devices
    return tuple(map(_result, (devices.results if devices is not None else None) or ()))


def _nodes(status: Status) -> NodeTerms | None:
    selector = status.allocation.node_selector if status.allocation is not None else None
    return None if selector is None else selected_nodes(selector)


def _consumed(value: object, driver: str | None) -> int | None:
    """A device of ours is never used for nothing, whatever is written there."""
    slots = whole(value)
    return max(1, slots or 1) if driver == DRIVER_NAME else slots


def _result(given: Given) -> Result:
    used = given.consumed_capacity
    consumed = _slots(used) if used else None
    return Result(
        request=intern(given.request or ""),
        driver=intern(given.driver or ""),
        slots=_consumed(consumed[1], given.driver) if consumed else None,
        admin_access=bool(given.admin_access),
        pool=intern(given.pool or ""),
        device=intern(given.device or ""),
        is_part=given.share_id is not None,
    )


def _consumer(consumer: Consumer) -> PodUid:
    """Its UID; "" for one that is no pod."""
    is_pod = consumer.resource == "pods" and not consumer.api_group
    return PodUid(consumer.uid) if is_pod else NO_POD
