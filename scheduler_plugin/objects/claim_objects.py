"""ResourceClaims and ResourceClaimTemplates as the API server keeps them, read into views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern

from driver.api import DRIVER_NAME
from kube.shapes.claims import (
    NO_EXACT,
    NO_STATUS,
    AllocationResult,
    Claim,
    ClaimRequest,
    ConsumerReference,
    ExactRequest,
    Spec,
    Status,
    Template,
)
from kube.shapes.classes import Selector
from kube.shapes.metadata import NO_METADATA, Metadata
from kube.shapes.quantities import thousandths, whole
from kube.shapes.reading import JsonObject, UnreadableError, own_text, read_as
from scheduler_plugin.objects.claims import (
    Alternative,
    ClaimConstraint,
    ClaimTemplateView,
    ClaimView,
    ClassName,
    GroupConsumer,
    Request,
    Result,
)
from scheduler_plugin.objects.names import (
    CHARGED_ANNOTATION,
    EVICT_FOREIGN_ANNOTATION,
    GROUP,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
    ClaimUid,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.node_selection import NodeTerms, selected_nodes
from scheduler_plugin.objects.requests import read_quantity

SLOTS = "slots"
"""The capacity of Moorage's devices that can be used concurrently."""

SLOTS_NAMES = (SLOTS, f"{GROUP}/{SLOTS}")
"""A capacity's name may be qualified with the domain of its driver."""


def claim_view(obj: JsonObject | Claim, *, queue_label: str) -> ClaimView:
    """Parse a ResourceClaim of resource.k8s.io/v1."""
    claim = read_as(Claim, obj)
    metadata, status = claim.metadata or NO_METADATA, claim.status or NO_STATUS
    annotations = metadata.annotations or {}
    consumers = status.reserved_for or ()
    pods, groups = _pods(consumers), _groups(consumers)
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
        reserved_for=pods,
        groups=groups,
        other_consumers=len(consumers) - len(pods) - len(groups),
        is_deleting=metadata.deletion_timestamp is not None,
        constraints=_constraints(claim.spec),
        nodes=_nodes(status),
        charge_note=annotations.get(CHARGED_ANNOTATION, ""),
        allocated_at=(status.allocation.allocation_timestamp or "") if status.allocation else "",
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
        return ()  # Saves time: thousands of claims have none.
    return tuple(
        ClaimConstraint(tuple(map(intern, each.requests or ())), intern(each.match_attribute or ""))
        for each in found
    )


def _request(asked: ClaimRequest, path: str) -> Request:
    name = intern(asked.name or "")
    alternatives = tuple(
        _alternative(
            choice, f"{path}.firstAvailable[{number}]", intern(f"{name}/{choice.name or ''}")
        )
        for number, choice in enumerate(asked.first_available or ())
    )
    exactly = asked.exactly or NO_EXACT
    return Request(alternatives or (_alternative(exactly, f"{path}.exactly", name),))


def _alternative(exact: ExactRequest, path: str, name: str) -> Alternative:
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
        capacity=_thousandths(capacity) if capacity else (),
    )


def expressions(selectors: Iterable[Selector]) -> tuple[str | None, ...]:
    """The CEL expressions of selectors; None for a selector of another kind.

    The texts are interned, since many claims are made of one template.
    """
    found = (each.cel.expression if each.cel is not None else None for each in selectors)
    return tuple(None if text is None else intern(text) for text in found)


def _slots(amounts: Mapping[str, object]) -> tuple[str, object] | None:
    """The name and the value of the capacity for slots; None if it is not given."""
    return next(((name, amounts[name]) for name in SLOTS_NAMES if name in amounts), None)


def _thousandths(amounts: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Amounts of capacities other than slots; what is no quantity is left out."""
    found = ((name, thousandths(value)) for name, value in amounts.items())
    return tuple(
        sorted(
            (intern(name), amount)
            for name, amount in found
            if amount is not None and name not in SLOTS_NAMES
        )
    )


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
    """The consumed slots; at least 1 for Moorage's devices, even if the value is invalid."""
    slots = whole(value)
    return max(1, slots or 1) if driver == DRIVER_NAME else slots


def _result(given: AllocationResult) -> Result:
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
        consumed=_thousandths(used) if used and given.driver != DRIVER_NAME else (),
    )


def _pods(consumers: Iterable[ConsumerReference]) -> tuple[PodUid, ...]:
    return tuple(PodUid(each.uid) for each in consumers if each.is_pod and each.uid)


def _groups(consumers: Iterable[ConsumerReference]) -> tuple[GroupConsumer, ...]:
    return tuple(
        GroupConsumer(intern(each.name or ""), each.uid) for each in consumers if each.is_pod_group
    )
