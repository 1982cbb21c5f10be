"""ResourceClaims and ResourceClaimTemplates: the parts that decide who is charged what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from kube.shapes.selection import Toleration
from scheduler_plugin.objects.names import NO_POD, NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.node_selection import NodeTerms

ClassName = NewType("ClassName", str)


class DeviceId(NamedTuple):
    """A device, wherever slices or allocations name it."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"device {self.driver}/{self.pool}/{self.name}"


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
