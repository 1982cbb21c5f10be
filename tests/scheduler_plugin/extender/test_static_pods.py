"""A control plane's static pod, with the plugin put beside its kube-scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.extender.static_pods import Sidecar, with_plugin
from scheduler_plugin.settings import PrintStaticPodSettings

SIDECAR = Sidecar(image="moorage:1", folder="/etc/kubernetes/moorage", flags=("--lease=a/b",))


def manifest() -> Any:
    """As kubeadm writes it."""
    file = "/etc/kubernetes/scheduler.conf"
    words = ("--authentication-kubeconfig=", "--kubeconfig=")
    container = {
        "name": "kube-scheduler",
        "image": "kube-scheduler:v1.36.3",
        "command": ["kube-scheduler", *(f"{word}{file}" for word in words), "--leader-elect=true"],
        "volumeMounts": [{"name": "kubeconfig", "mountPath": file, "readOnly": True}],
    }
    volume = {"name": "kubeconfig", "hostPath": {"path": file, "type": "FileOrCreate"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"containers": [container], "hostNetwork": True, "volumes": [volume]},
    }


def test_kube_scheduler_reads_its_configuration_and_keeps_all_else() -> None:
    before = manifest()
    scheduler, plugin = with_plugin(before, SIDECAR)["spec"]["containers"]

    assert scheduler["command"] == [
        "kube-scheduler",
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--leader-elect=true",
        "--config=/etc/kubernetes/moorage/scheduler.yaml",
    ]
    assert [m["name"] for m in scheduler["volumeMounts"]] == ["kubeconfig", "moorage"]
    assert plugin["command"][2:] == [
        "--kubeconfig=/etc/kubernetes/moorage/plugin.conf",
        "--lease=a/b",
    ]
    assert before == manifest()


def test_what_is_changed_already_stays_as_it_is() -> None:
    once = with_plugin(manifest(), SIDECAR)

    assert with_plugin(once, SIDECAR) == once


def test_a_new_image_replaces_the_one_before() -> None:
    later = Sidecar(image="moorage:2", folder=SIDECAR.folder, flags=())

    containers = with_plugin(with_plugin(manifest(), SIDECAR), later)["spec"]["containers"]

    assert [c["image"] for c in containers] == ["kube-scheduler:v1.36.3", "moorage:2"]


def test_flags_in_args_are_found_there() -> None:
    before = manifest()
    (container,) = before["spec"]["containers"]
    container["args"] = container.pop("command")[1:]

    scheduler, _ = with_plugin(before, SIDECAR)["spec"]["containers"]

    assert scheduler["args"][-1] == "--config=/etc/kubernetes/moorage/scheduler.yaml"
    assert "command" not in scheduler


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "it is no Pod"),
        ({"kind": "Deployment"}, "it is no Pod"),
        (
            {"kind": "Pod", "spec": {"containers": [{"name": "etcd"}]}},
            "no container kube-scheduler",
        ),
        (
            {
                "kind": "Pod",
                "spec": {
                    "containers": [
                        {"name": "kube-scheduler", "command": ["x", "--kubeconfig", "f", "--a=b"]}
                    ]
                },
            },
            "with = between name and value",
        ),
    ],
)
def test_what_is_no_static_pod_of_a_kube_scheduler_is_refused(found: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        with_plugin(found, SIDECAR)


def test_the_command_line_says_which(tmp_path: Path) -> None:
    file = tmp_path / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(manifest()))
    words = ["print-static-pod", "--image=moorage:1", f"--manifest={file}"]

    settings = parse_settings([*words, "--plugin-config=/etc/plugin.yaml"], {})

    assert isinstance(settings, PrintStaticPodSettings)
    assert settings.manifest == file
    assert settings.sidecar.flags == [
        "--lease=kube-system/kube-scheduler",
        "--scheduler-name=default-scheduler",
        "--config=/etc/plugin.yaml",
    ]
