"""Plans: the devices that a claim gets, from the current state of the node.

AllocatedClaim, PreparedClaims, DevicesView ──plan──► PreparedClaim | Failure
"""

from __future__ import annotations

from driver.preparing.files.prepared import PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import (
    AllocatedClaim,
    Failure,
    Instances,
    as_prepared,
    is_prepared,
    plan_prepare,
)
from driver.preparing.grants.device_views import DevicesView
from driver.preparing.grants.renewals import OnHost, renewed, with_real_paths
from driver.preparing.grants.rival_claims import Renewal, without_rivals


def plan(
    claim: AllocatedClaim,
    prepared: PreparedClaims,
    view: DevicesView | None,
    boot_id: str,
    on_host: OnHost,
) -> PreparedClaim | Failure:
    """The plan for a claim; a prepared claim keeps what it has.

    `prepared` has all claims; `view` is None before the first discovery; `boot_id` is the current
    one.
    """
    if is_prepared(claim, prepared):
        return as_prepared(prepared[claim.reference.uid])
    found = _instances(claim, view)
    resolved = {key: with_real_paths(each, on_host.resolve) for key, each in found.items()}
    planned = plan_prepare(claim, resolved, prepared, boot_id, on_host.refuse_mount)
    if view is None or isinstance(planned, Failure):
        return planned
    if all(view.where.named(each.name) is each for each in found.values()):
        return planned
    return _at_current_locations(planned, prepared, view, on_host)


def _instances(claim: AllocatedClaim, view: DevicesView | None) -> Instances:
    known = {(d.pool, d.device): view.instance(d) for d in claim.devices} if view else {}
    return {key: instance for key, instance in known.items() if instance}


def _at_current_locations(
    planned: PreparedClaim, prepared: PreparedClaims, view: DevicesView, on_host: OnHost
) -> PreparedClaim | Failure:
    """The plan with current locations: the published ones may lead to another device by now."""
    mine = Renewal(planned, renewed(planned, view.where, on_host))
    others = (Renewal(c, c) for uid, c in prepared.items() if uid != planned.reference.uid)
    return as_prepared(next(without_rivals([mine, *others])).after)
