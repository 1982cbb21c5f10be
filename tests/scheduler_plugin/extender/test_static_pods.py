"""A control plane's static pod, with the plugin put beside its kube-scheduler."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_plugin.__main__ import main
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.extender.scheduler_configuration import (
    PrintConfigSettings,
    scheduler_configuration,
)
from scheduler_plugin.extender.static_pods import Sidecar, with_plugin
from scheduler_plugin.settings import PrintStaticPodSettings
from tests.asgi import healthy

SIDECAR = Sidecar(
    image="moorage:1",
    folder="/etc/kubernetes/moorage",
    flags=("--lease=a/b",),
    pages=Listening(host="127.0.0.1", port=10262, tls=None),
)


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
    later = replace(SIDECAR, image="moorage:2")

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
        (None, "kind: must be Pod"),
        ({"kind": "Deployment"}, "kind: must be Pod"),
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


def printed(tmp_path: Path, *flags: str) -> PrintStaticPodSettings:
    """What the command line comes to, for the static pod as kubeadm writes it."""
    file = tmp_path / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(manifest()))
    words = ("print-static-pod", "--image=moorage:1", f"--manifest={file}", *flags)
    settings = parse_settings(words, {})
    assert isinstance(settings, PrintStaticPodSettings)
    return settings


def test_the_command_line_says_which(tmp_path: Path) -> None:
    settings = printed(tmp_path, "--plugin-config=/etc/plugin.yaml")

    assert settings.manifest == tmp_path / "kube-scheduler.yaml"
    assert settings.sidecar.flags == [
        "--lease=kube-system/kube-scheduler",
        "--scheduler-name=default-scheduler",
        "--pages-address=127.0.0.1:10262",
        *TLS_FLAGS,
        "--config=/etc/plugin.yaml",
    ]


def test_a_file_of_settings_that_is_here_says_where_the_pages_are(tmp_path: Path) -> None:
    file = tmp_path / "plugin.yaml"
    file.write_text('pages-address: "127.0.0.1:9999"')

    of_the_file = printed(tmp_path, f"--plugin-config={file}").sidecar
    of_the_flag = printed(tmp_path, f"--plugin-config={file}", "--pages-address=:9998").sidecar

    assert (of_the_file.pages.port, of_the_flag.pages.port) == (9999, 9998)
    assert "--pages-address=127.0.0.1:9999" in of_the_file.flags
    assert "--pages-address=:9998" in of_the_flag.flags


def test_probes_cannot_ask_at_any_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        printed(tmp_path, "--pages-address=127.0.0.1:0")

    assert "and probes need one" in capsys.readouterr().err


def probe(settings: PrintStaticPodSettings, kind: str) -> Sequence[str]:
    """The command of a probe, run by this Python."""
    containers = with_plugin(manifest(), settings.sidecar)["spec"]["containers"]
    (found,) = (c[kind] for c in containers if c["name"] == "moorage-scheduler-plugin")
    return [sys.executable, *found["exec"]["command"][1:]]


@pytest.mark.parametrize("kind", ["startupProbe", "livenessProbe"])
@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("::1", "[::1]"),
        ("", ""),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "[::]"),
    ],
)
async def test_probes_ask_where_the_pages_are(
    tmp_path: Path, kind: str, host: str, shown: str
) -> None:
    async with serving(healthy, Listening(host=host, port=0, tls=None)) as bound:
        command = probe(printed(tmp_path, f"--pages-address={shown}:{bound.port}"), kind)
        asked = await asyncio.create_subprocess_exec(*command)
        assert await asked.wait() == 0
    asked = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    assert await asked.wait() != 0


TLS_FLAGS = [
    "--tls-cert-file=/etc/kubernetes/moorage/plugin.crt",
    "--tls-private-key-file=/etc/kubernetes/moorage/plugin.key",
    "--client-ca-file=/etc/kubernetes/moorage/ca.crt",
]


def static_pod_words(folder: Path, *more: str) -> list[str]:
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(manifest()))
    return ["print-static-pod", "--image=m", f"--manifest={file}", f"--folder={folder}", *more]


def test_plain_http_is_a_choice(tmp_path: Path) -> None:
    """Other processes of the machine, network handlers among them, share its loopback."""
    default, chosen = (
        parse_settings(static_pod_words(tmp_path, *more), {}) for more in ((), ("--plain-http",))
    )

    assert isinstance(default, PrintStaticPodSettings)
    assert isinstance(chosen, PrintStaticPodSettings)
    assert any("--client-ca-file=" in flag for flag in default.sidecar.flags)
    assert not any("tls" in flag or "-ca-" in flag for flag in chosen.sidecar.flags)


@pytest.mark.parametrize(
    ("asked_by", "more", "said"),
    [
        ((), (), "no extender has a urlPrefix of https"),
        (("--certificates=FOLDER",), (), ""),
        ((), ("--plain-http",), ""),
        (("--certificates=FOLDER",), ("--plain-http",), "no extender has a urlPrefix of http"),
    ],
)
def test_a_pod_that_kube_scheduler_would_not_reach_is_not_printed(
    asked_by: tuple[str, ...],
    more: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As after an upgrade, of which kube-scheduler's configuration knows nothing."""
    words = ["print-config", *(word.replace("FOLDER", str(tmp_path)) for word in asked_by)]
    monkeypatch.setattr("sys.argv", ["moorage-scheduler-plugin", *words])
    assert main() == 0
    (tmp_path / "scheduler.yaml").write_text(capsys.readouterr().out)

    monkeypatch.setattr(
        "sys.argv", ["moorage-scheduler-plugin", *static_pod_words(tmp_path, *more)]
    )
    status = main()

    printed = capsys.readouterr()
    assert (status, bool(printed.out)) == ((2, False) if said else (0, True))
    assert said in printed.err


def test_kube_scheduler_is_told_the_files_of_the_folder() -> None:
    settings = parse_settings(["print-config", "--certificates=/etc/kubernetes/moorage"], {})

    assert isinstance(settings, PrintConfigSettings)
    (extender,) = scheduler_configuration(settings)["extenders"]
    assert extender["urlPrefix"] == "https://127.0.0.1:10261"
    assert extender["tlsConfig"] == {
        "caFile": "/etc/kubernetes/moorage/ca.crt",
        "certFile": "/etc/kubernetes/moorage/scheduler.crt",
        "keyFile": "/etc/kubernetes/moorage/scheduler.key",
    }
