"""What the driver tells of itself in figures: their names, and what one is.

Things that happen are counted where they happen, by `prometheus`. What there is at a moment is
derived from it when somebody asks, so that no figure can differ from what it is about, see
`running.figures`.
`docs/metrics.md` is the table for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a figure does: a counter only rises, a gauge is what it is now."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """Figures of one name, told apart by labels.

    Attributes:
        command: Which of `node` and `shared` has it; both where it is empty.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure; its labels are in the order of its family's."""

    family: Family
    labels: tuple[str, ...]
    value: float


PASSES = Family(
    "moorage_driver_passes_total",
    Kind.COUNTER,
    "Rounds of deciding and writing. work is what a round brings about (publishing: ResourceSlices)"
    ", result is ok or error. A round that failed is done again.",
    ("work", "result"),
)
PASS_SECONDS = Family(
    "moorage_driver_pass_duration_seconds",
    Kind.HISTOGRAM,
    "How long such a round took, failed ones included.",
    ("work",),
)
SLICE_WRITES = Family(
    "moorage_driver_slice_writes_total",
    Kind.COUNTER,
    "ResourceSlices written. operation is create, update or delete; result is ok or error.",
    ("operation", "result"),
)
CLAIM_REQUESTS = Family(
    "moorage_driver_claim_requests_total",
    Kind.COUNTER,
    "Claims that the kubelet asked to prepare or unprepare (operation); result is ok or error.",
    ("operation", "result"),
    "node",
)
CLAIM_REQUEST_SECONDS = Family(
    "moorage_driver_claim_request_duration_seconds",
    Kind.HISTOGRAM,
    "How long the kubelet waited for the answer to such a call, which may name several claims.",
    ("operation",),
    "node",
)
ALLOCATIONS = Family(
    "moorage_driver_allocations_total",
    Kind.COUNTER,
    "Calls of Allocate of the device plugins. result is granted, refused or error.",
    ("result",),
    "node",
)
ALLOCATION_SECONDS = Family(
    "moorage_driver_allocation_duration_seconds",
    Kind.HISTOGRAM,
    "How long the kubelet waited for the answer to Allocate.",
    (),
    "node",
)
HANDLERS = Family(
    "moorage_driver_discovery_handlers",
    Kind.GAUGE,
    "Discovery handlers. source is embedded or external; state is Waiting, Active or Offline.",
    ("handler", "source", "state"),
    "node",
)
DEVICES = Family(
    "moorage_driver_devices",
    Kind.GAUGE,
    "Devices that this node's handlers report. shared tells whether other nodes may see them, too.",
    ("configuration", "shared"),
    "node",
)
COLLISIONS = Family(
    "moorage_driver_name_collisions",
    Kind.GAUGE,
    "Devices with another name than Akri gives them, since that is another device's.",
    ("configuration",),
    "node",
)
CLAIMS_PREPARED = Family(
    "moorage_driver_claims_prepared",
    Kind.GAUGE,
    "Claims that are prepared on this node.",
    (),
    "node",
)
SLOTS_HELD = Family(
    "moorage_driver_slots_held",
    Kind.GAUGE,
    "Slots that this node holds through the device plugin.",
    ("configuration",),
    "node",
)
LEADER = Family(
    "moorage_driver_leader",
    Kind.GAUGE,
    "1 on the replica that is the elected one, else 0.",
    (),
    "shared",
)
INSTANCES = Family(
    "moorage_driver_instances",
    Kind.GAUGE,
    "Instances. seen tells whether a node sees the device now.",
    ("configuration", "seen"),
    "shared",
)
SLOTS = Family(
    "moorage_driver_slots",
    Kind.GAUGE,
    "Slots of all Instances.",
    ("configuration",),
    "shared",
)
SLOTS_USED = Family(
    "moorage_driver_slots_used",
    Kind.GAUGE,
    "Slots of all Instances that are held through device plugins.",
    ("configuration",),
    "shared",
)

FAMILIES = (
    PASSES,
    PASS_SECONDS,
    SLICE_WRITES,
    CLAIM_REQUESTS,
    CLAIM_REQUEST_SECONDS,
    ALLOCATIONS,
    ALLOCATION_SECONDS,
    HANDLERS,
    DEVICES,
    COLLISIONS,
    CLAIMS_PREPARED,
    SLOTS_HELD,
    LEADER,
    INSTANCES,
    SLOTS,
    SLOTS_USED,
)


def single(family: Family, value: float) -> Iterable[Sample]:
    """A figure without labels."""
    return (Sample(family, (), value),)


def samples(family: Family, counts: Mapping[tuple[str, ...], float]) -> Iterable[Sample]:
    """Figures by their labels, in a fixed order."""
    return [Sample(family, labels, value) for labels, value in sorted(counts.items())]
