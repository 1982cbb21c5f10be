"""The command line's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster.command_line import parser, settings_of
from local_cluster.errors import SettingsError
from local_cluster.settings import (
    CLUSTER_PARTS,
    CONTROL_PLANE,
    PARTS_BESIDE_A_RELEASE,
    ClusterSettings,
    Profile,
)


def settings_from(*words: str) -> ClusterSettings:
    return settings_of(parser().parse_args(["--dir", "/srv/cluster", "up", *words]))


def test_without_flags_the_defaults_count() -> None:
    expected = ClusterSettings(work_dir=Path("/srv/cluster"), parts=PARTS_BESIDE_A_RELEASE)

    assert settings_from() == expected


def test_a_second_scheduler_of_the_chart_s_name_runs_only_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    """Two of one name bind each other's pods, and only one of them asks the plugin."""
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("parallelism: 4\n")
    file = tmp_path / "settings.yaml"
    file.write_text("scheduler_overlay: {parallelism: 4}\n")
    listed = tmp_path / "parts.yaml"
    listed.write_text("parts: [etcd, kube-apiserver, kube-scheduler-moorage]\n")

    assert "kube-scheduler-moorage" not in settings_from().parts
    for words in (
        ("--moorage-scheduler",),
        ("--scheduler-overlay", str(overlay)),
        ("--settings", str(file)),
    ):
        assert set(settings_from(*words).parts) == set(CLUSTER_PARTS)
    assert "kube-scheduler-moorage" in settings_from("--settings", str(listed)).parts


def test_flags_become_settings() -> None:
    settings = settings_from(
        *(
            "--profile",
            "dra-1.34",
            "--kubelets",
            "1.37",
            "--nodes",
            "1",
            "--no-audit",
            "--own-networks",
        ),
        *("--feature-gate", "DRAAdminAccess=false"),
        *("--apiserver-flag", "v=4", "--runtime-config", "api/alpha=true"),
    )

    assert settings.profile is Profile.DRA_1_34
    assert settings.kubelets == "1.37"
    assert (settings.nodes, settings.audit, settings.udevd) == (1, False, False)
    assert settings.own_networks
    assert settings.feature_gates == {"DRAAdminAccess": False}
    assert settings.apiserver_flags == {"v": "4"}
    assert settings.runtime_config == {"api/alpha": "true"}


def test_flags_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("nodes: 1\nfeature_gates: {A: true, B: true}\n")

    settings = settings_from("--settings", str(file), "--feature-gate", "B=false", "--nodes", "2")

    assert settings.nodes == 2
    assert settings.feature_gates == {"A": True, "B": False}


def test_control_plane_only_has_no_nodes() -> None:
    settings = settings_from("--control-plane-only")

    assert (settings.nodes, settings.parts) == (0, CONTROL_PLANE)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--feature-gate", "A=yes"), "true or false, not yes"),
        (("--apiserver-flag", "v"), "write NAME=VALUE"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        settings_from(*words)


def test_kubectl_gets_its_own_flags() -> None:
    options = parser().parse_args(["kubectl", "get", "pods", "-A", "-o", "name"])

    assert options.arguments == ["get", "pods", "-A", "-o", "name"]
