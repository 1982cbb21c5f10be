"""ResourceClaims and ResourceClaimTemplates: the parts that decide who is charged what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NewType

from scheduler_plugin.objects.fields import (
    JsonObject,
    a_list,
    an_object,
    flag,
    number,
    objects,
    own_text,
    read_quantity,
    readable,
    text,
    texts,
)
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
from scheduler_plugin.objects.quantities import whole

ClassName = NewType("ClassName", str)

SLOTS = "slots"
"""Capacity of the driver's devices that several requests use at one time."""

_SLOTS_NAMES = (SLOTS, f"{GROUP}/{SLOTS}")
"""A capacity's name may be qualified with the driver's domain, which it belongs to anyway."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """`exactly` of a request, or one entry of its `firstAvailable`.

    Attributes:
        name: The result's `request`: the request, or `<request>/<subrequest>`.
        count: Devices; None for allocationMode All.
        slots: Slots of each device; at least 1.
    """

    name: str
    device_class: ClassName
    count: int | None = 1
    slots: int = 1
    admin_access: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a claim: its alternatives, of which one is allocated."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One allocated device.

    Attributes:
        slots: The slots that it consumed; None where its driver does not count them.
    """

    request: str
    driver: str
    slots: int | None = None
    admin_access: bool = False


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
        reserved_for: UIDs of the consumers that are pods, the earliest first.
        other_consumers: How many consumers are something else.
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

    def claim(self, pod: str, entry: str) -> ClaimView:
        """The claim that will be made of it for a pod, before it exists: without a UID."""
        return ClaimView(
            namespace=self.namespace,
            name=f"{pod}-{entry}",
            uid=ClaimUid(""),
            label=self.label,
            requests=self.requests,
        )


@readable
def claim_view(obj: JsonObject, *, queue_label: str) -> ClaimView:
    """Parse a ResourceClaim of resource.k8s.io/v1."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    annotations = texts(metadata.get("annotations"), "metadata.annotations")
    spec = an_object(obj.get("spec"), "spec")
    status = an_object(obj.get("status"), "status")
    consumers = tuple(_consumers(status))
    return ClaimView(
        namespace=text(metadata.get("namespace"), "metadata.namespace"),
        name=own_text(metadata.get("name"), "metadata.name"),
        uid=ClaimUid(own_text(metadata.get("uid"), "metadata.uid")),
        resource_version=text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
        label=_label(metadata, "metadata", queue_label),
        owner_pod=PodUid(annotations.get(OWNER_POD_ANNOTATION, "")),
        evict_foreign=annotations.get(EVICT_FOREIGN_ANNOTATION) == "true",
        owner_left_at=annotations.get(OWNER_LEFT_AT_ANNOTATION, ""),
        requests=_requests(spec, "spec"),
        results=_results(status),
        reserved_for=tuple(uid for uid in consumers if uid),
        other_consumers=consumers.count(NO_POD),
    )


@readable
def claim_template_view(obj: JsonObject, *, queue_label: str) -> ClaimTemplateView:
    """Parse a ResourceClaimTemplate of resource.k8s.io/v1."""
    metadata = an_object(an_object(obj, "").get("metadata"), "metadata")
    spec = an_object(obj.get("spec"), "spec")
    of_claim = an_object(spec.get("metadata"), "spec.metadata")
    return ClaimTemplateView(
        namespace=text(metadata.get("namespace"), "metadata.namespace"),
        name=own_text(metadata.get("name"), "metadata.name"),
        label=_label(of_claim, "spec.metadata", queue_label),
        requests=_requests(an_object(spec.get("spec"), "spec.spec"), "spec.spec"),
    )


def _label(metadata: JsonObject, path: str, key: str) -> QueueName:
    labels = texts(metadata.get("labels"), f"{path}.labels")
    return QueueName(text(labels.get(key), f"{path}.labels"))


def _requests(spec: JsonObject, path: str) -> tuple[Request, ...]:
    devices = an_object(spec.get("devices"), f"{path}.devices")
    found = objects(devices.get("requests"), f"{path}.devices.requests")
    return tuple(_request(request, where) for where, request in found)


def _request(request: JsonObject, path: str) -> Request:
    name = text(request.get("name"), f"{path}.name")
    choices = objects(request.get("firstAvailable"), f"{path}.firstAvailable")
    alternatives = tuple(
        _alternative(choice, where, f"{name}/{text(choice.get('name'), where)}")
        for where, choice in choices
    )
    if not alternatives:
        where = f"{path}.exactly"
        alternatives = (_alternative(an_object(request.get("exactly"), where), where, name),)
    return Request(alternatives)


def _alternative(fields: JsonObject, path: str, name: str) -> Alternative:
    takes_all = text(fields.get("allocationMode"), f"{path}.allocationMode") == "All"
    capacity = an_object(fields.get("capacity"), f"{path}.capacity")
    asked = _slots(capacity.get("requests"), f"{path}.capacity.requests")
    return Alternative(
        name=name,
        device_class=ClassName(text(fields.get("deviceClassName"), f"{path}.deviceClassName")),
        count=None
        if takes_all
        else max(0, number(fields.get("count"), f"{path}.count", default=1)),
        slots=max(1, asked or 1),
        admin_access=flag(fields.get("adminAccess"), f"{path}.adminAccess"),
    )


def _slots(value: object, path: str) -> int | None:
    amounts = an_object(value, path)
    for name in _SLOTS_NAMES:
        if name in amounts:
            return read_quantity(amounts[name], f"{path}[{name}]", whole)
    return None


def _results(status: JsonObject) -> tuple[Result, ...] | None:
    if status.get("allocation") is None:
        return None
    path = "status.allocation.devices"
    allocation = an_object(status["allocation"], "status.allocation")
    results = an_object(allocation.get("devices"), path).get("results")
    return tuple(_result(item, where) for where, item in objects(results, f"{path}.results"))


def _result(fields: Mapping[str, object], path: str) -> Result:
    return Result(
        request=text(fields.get("request"), f"{path}.request"),
        driver=text(fields.get("driver"), f"{path}.driver"),
        slots=_slots(fields.get("consumedCapacity"), f"{path}.consumedCapacity"),
        admin_access=flag(fields.get("adminAccess"), f"{path}.adminAccess"),
    )


def _consumers(status: JsonObject) -> Iterator[PodUid]:
    """The consumers in their order; "" for one that is no pod."""
    for where, item in objects(
        a_list(status.get("reservedFor"), "status.reservedFor"), "status.reservedFor"
    ):
        uid = own_text(item.get("uid"), f"{where}.uid")
        is_pod = item.get("resource") == "pods" and not item.get("apiGroup")
        yield PodUid(uid) if is_pod else NO_POD
