"""ResourceClaims and ResourceClaimTemplates: the parts that decide who is charged what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from kube.shapes.selection import Toleration
from scheduler_plugin.objects.names import NO_POD, NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.node_selection import NodeTerms

ClassName = NewType("ClassName", str)


class DeviceId(NamedTuple):
    """The identity of a device in slices and allocations."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"device {self.driver}/{self.pool}/{self.name}"


@dataclass(frozen=True, slots=True)
class Alternative:
    """`exactly` of a request, or one entry of its `firstAvailable`.

    Attributes:
        name: `request` of its results: the request, or `<request>/<subrequest>`.
        count: The number of devices; None for allocationMode All.
        slots: Slots of each device; at least 1.
        problem: Why its number of slots is invalid, as a sentence; "" if it is valid.
        capacity: How much of other capacities it requests of each device, in thousandths.

    The other attributes do not decide about charges and are not compared, so that pods with the
    same requests are treated alike, whichever devices of a class they select.

    Attributes:
        selectors: CEL expressions that a device must satisfy; None for a selector without CEL.
        names_slots: Whether it requests slots, so that only devices with slots suit it.
        odd_capacity: The names of other capacities that it requests.
    """

    name: str
    device_class: ClassName
    count: int | None = 1
    slots: int = 1
    admin_access: bool = False
    problem: str = ""
    capacity: tuple[tuple[str, int], ...] = ()
    selectors: tuple[str | None, ...] = field(default=(), compare=False)
    tolerations: tuple[Toleration, ...] = field(default=(), compare=False)
    names_slots: bool = field(default=False, compare=False)
    odd_capacity: tuple[str, ...] = field(default=(), compare=False)


class ClaimConstraint(NamedTuple):
    """A constraint on the devices of a claim together.

    Attributes:
        requests: The requests or alternatives that it is about; () for all.
        attribute: The attribute of `matchAttribute`; "" for a constraint of another kind.
    """

    requests: tuple[str, ...]
    attribute: str


class GroupConsumer(NamedTuple):
    """A PodGroup of Kubernetes' own API that a claim is reserved for, in place of its pods."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a claim; one of its alternatives is allocated."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One allocated device.

    Attributes:
        slots: The consumed slots, at least 1 for Moorage's devices; None if its driver does not
            count slots.
        pool: The driver's pool that contains the device.
        is_part: Whether other claims may have parts of the same device at the same time.
        consumed: How much it consumes of the capacities of another driver's device, in thousandths.
    """

    request: str
    driver: str
    slots: int | None = None
    admin_access: bool = False
    pool: str = ""
    device: str = ""
    is_part: bool = False
    consumed: tuple[tuple[str, int], ...] = ()

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """A ResourceClaim.

    Attributes:
        resource_version: The precondition of writes; it is not compared.
        label: The queue label; "" for none. `owners` decides who owns the claim.
        owner_pod: The pod for which the binder wrote the label; "" if a user wrote it.
        owner_left_at: The annotation with the exit time of the owner; "" for none.
        charge_note: The annotation that says what its devices cost; "" for none.
        results: The allocated devices; None while the claim is not allocated.
        allocated_at: When it was allocated, as the API writes it; "" where Kubernetes does not say.
        nodes: The nodes that can use its devices, from its allocation; None if it says none.
        reserved_for: UIDs of the consumers that are pods, the earliest first; then the users that
            `group_users` names.
        groups: The PodGroups that it is reserved for, without unknown ones, see `group_claims`.
        group_users: The pods that use it through one of these groups.
        unknown_groups: The PodGroups that it is reserved for and that are not known.
        other_consumers: The number of consumers that are neither pods nor known PodGroups.
        is_deleting: Whether it is terminating: it is deleted once it has no consumer.
        constraints: The constraints of its spec, which is immutable; they are not compared.
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
    groups: tuple[GroupConsumer, ...] = ()
    group_users: tuple[PodUid, ...] = ()
    unknown_groups: tuple[GroupConsumer, ...] = ()
    other_consumers: int = 0
    is_deleting: bool = False
    constraints: tuple[ClaimConstraint, ...] = field(default=(), compare=False)
    nodes: NodeTerms | None = None
    allocated_at: str = ""
    charge_note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def consumer_entries(self) -> int:
        """How many entries `status.reservedFor` has; a PodGroup has one for all its pods."""
        pods = len(self.reserved_for) - len(self.group_users)
        return pods + len(self.groups) + self.other_consumers

    @property
    def is_allocated(self) -> bool:
        return self.results is not None

    @property
    def classes(self) -> frozenset[ClassName]:
        return frozenset(a.device_class for r in self.requests for a in r.alternatives)

    @property
    def classes_by_request(self) -> dict[str, ClassName]:
        """The class of each request, by the name that a result has for it."""
        return {a.name: a.device_class for r in self.requests for a in r.alternatives}

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """Its devices, each once, without those with administrative access."""
        own = (r.device_id for r in self.results or () if not r.admin_access)
        return tuple(dict.fromkeys(own))

    @property
    def parts(self) -> tuple[DeviceId, ...]:
        """The devices of which other claims may have parts, too, each once."""
        own = (r.device_id for r in self.results or () if r.is_part and not r.admin_access)
        return tuple(dict.fromkeys(own))

    @property
    def classes_asked_whole(self) -> frozenset[ClassName]:
        """The classes that it requests all devices of, so that its cost depends on their number."""
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
        """The claim that will be made from it for a pod; it has no UID yet."""
        return ClaimView(
            namespace=self.namespace,
            name=f"{pod}-{entry}",
            uid=ClaimUid(""),
            label=self.label,
            requests=self.requests,
            constraints=self.constraints,
        )
