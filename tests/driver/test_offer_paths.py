"""Which of the kubelet's contracts is taken."""

from __future__ import annotations

import pytest

from driver.offer_paths import OfferPath, taken_path


@pytest.mark.parametrize(
    ("slices", "extended", "taken"),
    [
        (True, True, OfferPath.DRA),
        (True, False, OfferPath.DEVICE_PLUGIN),
        (False, False, OfferPath.DEVICE_PLUGIN),
    ],
)
def test_auto_takes_dra_only_where_pods_need_not_be_rewritten(
    slices: bool, extended: bool, taken: OfferPath
) -> None:
    found = taken_path(OfferPath.AUTO, slices_are_served=slices, extended_resources=extended)

    assert found is taken


@pytest.mark.parametrize("wanted", [OfferPath.DRA, OfferPath.DEVICE_PLUGIN])
@pytest.mark.parametrize("has_dra", [True, False])
def test_who_chooses_gets_what_he_chose(wanted: OfferPath, has_dra: bool) -> None:
    found = taken_path(wanted, slices_are_served=has_dra, extended_resources=has_dra)

    assert found is wanted
