"""A prepared claim goes only where all that could speak for it was asked, and did not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ClaimUid
from driver.preparing.files import cdi
from driver.preparing.files.prepared import Home
from driver.preparing.stale_claims import (
    NODE_GRACE,
    Evidence,
    Listing,
    is_allocated,
    is_of_other_cluster,
    staleness,
    uids_of,
)
from tests.driver.claim_builders import HOME, a_reference, prepared

HOUR = timedelta(hours=1)
CLAIM = prepared(a_reference(1))
UNKNOWN = replace(CLAIM, home=Home())
NOTHING = Evidence(is_listed=False, exists=False, is_named=False)

answers = st.sampled_from([None, False, True])
homes = st.builds(Home, st.sampled_from(["", "n", "m"]), st.sampled_from(["", "c", "d"]))


@pytest.mark.parametrize("claim", [CLAIM, UNKNOWN])
def test_claim_that_nothing_speaks_for_goes_after_the_grace(claim: object) -> None:
    stale = staleness(CLAIM if claim is CLAIM else UNKNOWN, HOME, NOTHING, HOUR)

    assert stale is not None
    assert stale.grace == HOUR


@pytest.mark.parametrize(
    "evidence",
    [
        replace(NOTHING, is_listed=True),
        replace(NOTHING, is_listed=None),
        replace(NOTHING, exists=True),
        replace(NOTHING, exists=None),
        replace(NOTHING, is_named=True),
        replace(NOTHING, is_named=None),
    ],
)
def test_claim_stays_while_anything_speaks_for_it_or_is_silent(evidence: Evidence) -> None:
    assert staleness(CLAIM, HOME, evidence, HOUR) is None


def test_claim_whose_devices_the_api_server_took_away_goes_after_the_grace() -> None:
    """As one does that a driver of an earlier version released beside this one."""
    evidence = replace(NOTHING, exists=True, is_allocated=False)

    stale = staleness(CLAIM, HOME, evidence, HOUR)

    assert stale is not None
    assert stale.grace == HOUR
    for speaks in ("is_listed", "is_named", "is_allocated"):
        assert staleness(CLAIM, HOME, replace(evidence, **{speaks: True}), HOUR) is None
        assert staleness(CLAIM, HOME, replace(evidence, **{speaks: None}), HOUR) is None


def test_claim_is_allocated_with_a_device_that_is_prepared_alone() -> None:
    device, other = CLAIM.devices[0].allocated.device, "another"

    def found(driver: str, name: str) -> dict[str, Any]:
        results = [{"driver": driver, "pool": "n", "device": name}]
        return {"status": {"allocation": {"devices": {"results": results}}}}

    assert is_allocated(CLAIM, found("moorage.dev", device))
    assert not is_allocated(CLAIM, found("moorage.dev", other))
    assert not is_allocated(CLAIM, found("gpu.example.com", device))
    assert not is_allocated(CLAIM, {"status": {}})
    assert is_allocated(replace(CLAIM, devices=()), {})


def test_claim_of_another_cluster_goes_at_once() -> None:
    claim = replace(CLAIM, home=Home(HOME.node, "another"))

    stale = staleness(claim, HOME, Evidence(is_listed=True, exists=None), HOUR)

    assert stale is not None
    assert stale.grace == timedelta()


@pytest.mark.parametrize("exists", [None, False, True])
def test_claim_of_a_former_node_object_goes_when_kubelet_and_pods_deny_it(
    exists: bool | None,
) -> None:
    claim = replace(CLAIM, home=Home("former", HOME.cluster))

    stale = staleness(claim, HOME, replace(NOTHING, exists=exists), HOUR)

    assert stale is not None
    assert stale.grace == NODE_GRACE
    assert staleness(claim, HOME, replace(NOTHING, is_listed=True), HOUR) is None


@given(homes, answers, answers, answers)
def test_nothing_of_this_cluster_goes_that_the_kubelet_lists_or_does_not_speak_of(
    home: Home, is_listed: bool | None, exists: bool | None, is_named: bool | None
) -> None:
    claim = replace(CLAIM, home=home)
    evidence = Evidence(is_listed, exists, is_named)
    here = Home("n", "c")

    if is_listed is not False and not is_of_other_cluster(claim, here):
        assert staleness(claim, here, evidence, HOUR) is None


def test_listing_has_what_cdi_devices_and_names_say() -> None:
    (device,) = cdi.device_ids(CLAIM.devices[0])
    uids = uids_of([device, "nvidia.com/gpu=0", "moorage.dev/claim"])

    assert uids == {CLAIM.reference.uid}
    assert Listing(frozenset(), uids).has(CLAIM.reference)
    assert Listing(frozenset({("default", "claim-1")}), frozenset()).has(CLAIM.reference)
    assert not Listing(frozenset({("other", "claim-1")}), frozenset({ClaimUid("x")})).has(
        CLAIM.reference
    )
