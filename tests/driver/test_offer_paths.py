"""Which of the kubelet's contracts is taken."""

from __future__ import annotations

import pytest

from driver.offer_paths import OfferPath, prepares_extended_resources, taken_path


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


@pytest.mark.parametrize(
    ("kubelet", "prepares"),
    [
        ("v1.33.13", False),
        ("v1.35.2-eks-1234", False),
        ("v1.36.0", True),
        ("v1.37.2+k0s", True),
        ("v2.0.0", True),
        ("", True),
    ],
)
def test_an_old_kubelet_beside_a_new_api_server_prepares_no_extended_resource(
    kubelet: str, prepares: bool
) -> None:
    assert prepares_extended_resources(kubelet) is prepares


@pytest.mark.parametrize("wanted", [OfferPath.DRA, OfferPath.DEVICE_PLUGIN])
@pytest.mark.parametrize("has_dra", [True, False])
def test_who_chooses_gets_what_he_chose(wanted: OfferPath, has_dra: bool) -> None:
    found = taken_path(wanted, slices_are_served=has_dra, extended_resources=has_dra)

    assert found is wanted
