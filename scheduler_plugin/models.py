"""The Queue as a model: the source of its definition, and the webhook's parser of Queues.

Absent fields of `claimSharing` are inherited, so they have no defaults: a queue has each field of
its nearest ancestor that sets it. Errors within one Queue are found here. Errors that depend on
other objects (a missing parent, cycles, children with more than their parent) are found by the
webhook, and by the scheduler plugin, which reports them in conditions.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from driver.api import Problem
from driver.models import duration
from kube.models import (
    OBJECT_NAME,
    OBJECT_NAME_OR_NONE,
    Conditions,
    Counter,
    LabelSelector,
    Metadata,
    Model,
    extensions,
    extra,
    flaw,
    flaws,
    rule,
)
from kube.shapes.times import parse_duration
from scheduler_plugin.share_models import Amount, Share

LONGEST_NAME = 63
"""The maximum length of a Queue's name, which is the value of a label."""

Word = Literal["Allow", "Deny"]
QueueName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=OBJECT_NAME)]


def _short_enough(text: str) -> str:
    if parse_duration(text) is None:
        raise ValueError("It may last at most 8784h, a year.")
    return text


Duration = Annotated[
    str,
    *duration(
        "h|m|s|ms", ("duration(self) <= duration('8784h')", "it may last at most 8784h, a year")
    ),
    AfterValidator(_short_enough),
]


class ClaimSharing(Model):
    """Whether and how pods of other queues use claims that this queue owns.

    Each field that is absent is inherited from the parent.
    """

    policy: Word | None = None
    """Whether pods of other queues may use this queue's claims. Absent in a root means Allow."""
    queues: Annotated[list[QueueName] | None, Field(max_length=1000), extra(list_type="set")] = None
    """Queues that are exceptions to Deny, each with its descendants. Absent in a root means
    none."""
    on_owner_exit: Literal["Keep", "Evict"] | None = None
    """What happens to pods of other queues that outlive the last pod of this one on a claim. Absent
    in a root means Keep."""
    owner_exit_grace_period: Duration | None = None
    """How long pods of other queues may outlive the last pod of this one before they are evicted,
    such as 30s or 5m. Absent in a root means 5m."""
    evict_foreign: Word | None = None
    """Whether the annotation moorage.dev/evict-foreign of a claim may request the eviction of other
    queues' pods. Absent in a root means Allow."""
    label_at_create: Word | None = None
    """Whether users may name this queue on a claim that they create. Absent in a root means
    Allow."""


class QueueSpec(Model):
    """What the queue may use, and which queues may use its claims."""

    parent: Annotated[str, Field(max_length=LONGEST_NAME, pattern=OBJECT_NAME_OR_NONE)] | None = (
        None
    )
    """The parent queue. Absent or empty, the queue is the root of a tree. With a parent that does
    not exist it is a root, too, and a condition says so."""
    namespace_selector: Annotated[LabelSelector | None, extra(map_type="atomic")] = None
    """Labels of the namespaces whose pods and claims may use this queue. Empty selects all
    namespaces. Absent selects none: such a queue is a parent of others."""
    claim_sharing: ClaimSharing | None = None
    priority: Annotated[
        int, Field(ge=0, le=1_000_000_000, json_schema_extra={"format": "int32"})
    ] = 100
    """The priority among siblings for devices beyond all quotas: queues of larger priority get them
    first, and give them back last. Weights count among queues of one priority."""
    preempt_min_runtime: Duration | None = None
    """How long a pod of the queue runs before pods of a higher priority of the same queue, or of
    its ancestors, may preempt it, such as 30s or 5m. Absent, it is inherited; in a root it is 0."""
    reclaim_min_runtime: Duration | None = None
    """How long a pod of the queue runs before pods of other queues that are under their quota may
    take its devices. Against a pod of another branch, the setting counts of the ancestor below the
    lowest common ancestor, else the nearest setting above; absent in all of them, it is 0."""
    resources: Annotated[
        list[Share] | None,
        Field(max_length=1000),
        extra(list_type="map", list_map_keys=["deviceClass", "name"]),
    ] = None
    """Quotas and limits. A class that is not listed has quota 0 and no limit here; limits of
    ancestors count nevertheless."""

    @field_validator("resources")
    @classmethod
    def _once_each(cls, shares: list[Share] | None) -> list[Share] | None:
        seen: set[str] = set()
        for number, share in enumerate(shares or ()):
            if share.shown_name in seen:
                at = "name" if share.name else "deviceClass"
                raise flaw(f"{share.shown_name} is listed twice.", f"[{number}].{at}")
            seen.add(share.shown_name)
        return shares


class ClaimCounts(Model):
    """Numbers of claims that the queue owns or uses."""

    owned: Counter | None = None
    """Allocated claims that the queue owns, without its descendants."""
    shared_out: Counter | None = None
    """Owned claims that pods of other queues use, too."""
    orphans: Counter | None = None
    """Claims that pods of the queue use, that have no owner and are charged to no queue; absent if
    there are none."""


class QueueStatus(Model):
    """What the queue is charged. Written by the scheduler plugin."""

    observed_generation: Counter | None = None
    """The generation of the spec that the status is about."""
    usage: dict[str, Amount] | None = None
    """What the queue and its descendants are charged, by class. A claim counts once, however many
    pods use it."""
    usage_non_preemptible: dict[str, Amount] | None = None
    """The part of the usage by pods that are not preemptible."""
    requested: dict[str, Amount] | None = None
    """The usage and what waiting pods ask for, together."""
    share: dict[str, Amount] | None = None
    """The fair share of the queue and its descendants, up to what they ask for: quota first, then
    the rest by priority and overQuotaWeight. Only limits end it; the number of devices is not
    considered. It is some seconds old."""
    reclaimable: dict[str, Amount] | None = None
    """The part of the usage that is beyond the quota and used by preemptible pods: what queues
    under their quota may reclaim."""
    held: dict[str, Amount] | None = None
    """What is held for pending pods that others were evicted for, by class; absent if there is
    nothing."""
    claims: ClaimCounts | None = None
    summary: str | None = None
    """Usage, quota and limit of each class for users, such as camera 3/4/8, gpu 0/2/-, where a dash
    means unlimited. Classes in use come first; the last entry may be the number of further classes.
    Programs read usage and spec.resources."""
    waiting: Counter | None = None
    """Pods of the queue and its descendants that ask for devices and have no node yet."""
    conditions: Conditions = None
    """The state in detail. Accepted: the spec is in force; False if an entry is of another version.
    ParentMissing: the queue counts as a
    root. ParentCycle: the ceilings of the cycle hold for all queues in it or below it.
    Unattributed: pods that were bound without a verdict name this queue, and are charged to no
    queue. QuotaUnmet: pods wait within the quota, and no pod can be evicted for them; the message
    says why. QuotaExceedsDevices: for five minutes or longer its quota, or the sum of the quotas of
    its level, has exceeded the published devices."""


class QueueModel(Model):
    """An account that the use of devices is charged to.

    Queues form trees: what is charged to a queue is charged to its ancestors, too.
    """

    model_config = ConfigDict(
        json_schema_extra=extensions(
            validations=[
                rule(
                    "size(self.metadata.name) <= 63",
                    "the name of a queue is a label's value and may have at most 63 characters",
                ),
                rule(
                    "!has(self.spec) || !has(self.spec.parent)"
                    " || self.spec.parent != self.metadata.name",
                    "a queue cannot be its own parent",
                    ".spec.parent",
                ),
            ]
        )
    )
    metadata: Metadata
    spec: QueueSpec | None = None
    status: QueueStatus | None = None

    @model_validator(mode="after")
    def _fits_its_name(self) -> Self:
        name = self.metadata.name
        if len(name) > LONGEST_NAME:
            raise flaw(f"{len(name)} characters; it may have at most 63.", ".metadata.name")
        if self.spec and self.spec.parent == name:
            raise flaw("A queue cannot be its own parent.", ".spec.parent")
        return self


def queue_problems(body: object) -> tuple[Problem, ...]:
    """The errors within a Queue."""
    return tuple(Problem(path, sentence) for path, sentence in flaws(QueueModel, body))
