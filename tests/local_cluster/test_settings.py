"""Settings of the local cluster."""

from __future__ import annotations

import pytest

from local_cluster.errors import SettingsError
from local_cluster.settings import (
    CONTROL_PLANE,
    Profile,
    settings_from_mapping,
    settings_to_mapping,
)
from tests.local_cluster.builders import some_settings


def test_settings_survive_json() -> None:
    settings = some_settings(
        nodes=0,
        parts=CONTROL_PLANE,
        kubelets="1.37",
        profile=Profile.DRA_1_34,
        feature_gates={"DRAAdminAccess": False},
        scheduler_overlay={"extenders": [{"urlPrefix": "http://198.18.0.1:1"}]},
    )

    assert settings_from_mapping(settings_to_mapping(settings)) == settings


def test_single_gates_override_the_profile() -> None:
    settings = some_settings(
        profile=Profile.DRA_1_34, feature_gates={"DRAConsumableCapacity": True}
    )

    assert settings.node_gates["DRAConsumableCapacity"]
    assert not settings.node_gates["DRADeviceTaints"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kubernetes": "1.12"}, "1.12 is not one of 1.37, 1.36, 1.34, 1.33"),
        ({"parts": ("etcd",)}, "nothing works without kube-apiserver"),
        ({"parts": (*CONTROL_PLANE, "cloud")}, "unknown parts: cloud"),
        ({"nodes": -1}, "nodes must be 0 to 8"),
        ({"nodes": 9}, "nodes must be 0 to 8"),
        ({"fake_nodes": -1}, "fake_nodes must not be negative"),
        ({"kubernetes": "1.33", "profile": Profile.DRA_1_34}, "only 1.37 has"),
        ({"kubelets": "1.12"}, "kubelets 1.12 is not one of 1.37"),
        ({"kubernetes": "1.36", "kubelets": "1.37"}, "not be newer than the API server"),
        ({"udevd": True, "nodes": 0}, "udevd runs on a node"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        some_settings(**changes)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"work_dir": "/srv", "colour": "blue"}, "unknown settings: colour"),
        ({"nodes": 2}, "work_dir is missing"),
        ({"work_dir": "/srv", "profile": "1.12"}, "profile 1.12 is not one of"),
    ],
)
def test_files_that_say_nonsense_are_refused(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        settings_from_mapping(values)
