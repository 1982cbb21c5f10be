"""What the command line understands, and the settings that it means."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from local_cluster.errors import SettingsError
from local_cluster.settings import (
    CONTROL_PLANE,
    KUBERNETES_VERSIONS,
    MOORAGE_SCHEDULER,
    PARTS_BESIDE_A_RELEASE,
    ClusterSettings,
    Profile,
    settings_from_mapping,
)

PART_COMMANDS = {
    "start": "start a part that was killed",
    "restart": "SIGTERM, start, wait until healthy",
    "kill": "SIGKILL; it stays dead until start",
    "stop": "SIGSTOP",
    "cont": "SIGCONT",
}
DEFAULT_DIR = Path(__file__).resolve().parents[3] / ".cluster"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="local_cluster", description="A throw-away real Kubernetes.")
    top.add_argument("--dir", type=Path, default=DEFAULT_DIR, help="work folder of the cluster")
    commands = top.add_subparsers(dest="command", required=True)
    _add_up(commands.add_parser("up", help="make the cluster what the settings say"))
    down = commands.add_parser("down", help="end it; keeps the logs")
    down.add_argument("--purge", action="store_true", help="remove the work folder, too")
    commands.add_parser("status", help="health of each part")
    for name, meaning in PART_COMMANDS.items():
        commands.add_parser(name, help=meaning).add_argument("part")
    logs = commands.add_parser("logs", help="end of the parts' logs")
    logs.add_argument("parts", nargs="*")
    logs.add_argument("--follow", "-f", action="store_true")
    logs.add_argument("--lines", "-n", type=int, default=20)
    kubectl = commands.add_parser("kubectl", help="kubectl as the administrator")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    commands.add_parser("load-image", help="import a tar").add_argument("archive", type=Path)
    commands.add_parser("collect", help="logs and events").add_argument("target", type=Path)
    return top


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument("--settings", type=Path, help="YAML or JSON file; flags override it")
    up.add_argument("--kubernetes", choices=KUBERNETES_VERSIONS)
    up.add_argument("--kubelets", choices=KUBERNETES_VERSIONS, help="another version of kubelets")
    up.add_argument("--profile", choices=[profile.value for profile in Profile])
    up.add_argument("--nodes", type=int)
    up.add_argument("--fake-nodes", type=int)
    up.add_argument("--feature-gate", action="append", default=[], metavar="NAME=true|false")
    up.add_argument("--apiserver-flag", action="append", default=[], metavar="NAME=VALUE")
    up.add_argument("--runtime-config", action="append", default=[], metavar="API=VALUE")
    up.add_argument(
        "--moorage-scheduler",
        action="store_true",
        help="a kube-scheduler named moorage as a process, for tests; never beside the chart's",
    )
    up.add_argument("--scheduler-overlay", type=Path, help="its configuration's fields; implies it")
    up.add_argument("--no-audit", action="store_true")
    up.add_argument("--own-networks", action="store_true", help="a network namespace for each node")
    up.add_argument("--udevd", action="store_true", help="run udevd inside the cluster's network")
    up.add_argument(
        "--control-plane-only",
        action="store_true",
        help="etcd and the API server, no nodes: up in seconds",
    )


def settings_of(options: argparse.Namespace) -> ClusterSettings:
    """The file's settings, overridden by what the flags say."""
    values: dict[str, Any] = _read(options.settings) if options.settings else {}
    plain = ("kubernetes", "kubelets", "profile", "nodes", "fake_nodes")
    values |= {name: value for name in plain if (value := getattr(options, name)) is not None}
    gates = {name: _flag(name, value) for name, value in _pairs(options.feature_gate)}
    for name, pairs in (
        ("feature_gates", gates),
        ("apiserver_flags", dict(_pairs(options.apiserver_flag))),
        ("runtime_config", dict(_pairs(options.runtime_config))),
    ):
        values[name] = {**values.get(name, {}), **pairs}
    if options.scheduler_overlay:
        values["scheduler_overlay"] = _read(options.scheduler_overlay)
    if options.no_audit:
        values["audit"] = False
    values |= {name: True for name in ("own_networks", "udevd") if getattr(options, name)}
    values["parts"] = _parts(values, options.moorage_scheduler)
    if options.control_plane_only:
        values |= {"nodes": 0, "parts": CONTROL_PLANE}
    return settings_from_mapping({**values, "work_dir": options.dir})


def _parts(values: Mapping[str, Any], moorage_scheduler: bool) -> tuple[str, ...]:
    """The file's, else those of most users; an overlay is for a scheduler that has to be there."""
    parts = tuple(values.get("parts", PARTS_BESIDE_A_RELEASE))
    second = (MOORAGE_SCHEDULER,) if moorage_scheduler or values.get("scheduler_overlay") else ()
    return tuple(dict.fromkeys((*parts, *second)))


def _read(path: Path) -> dict[str, Any]:
    value = yaml.safe_load(path.read_text())
    if not isinstance(value, dict):
        raise SettingsError(f"{path} holds no mapping")
    return value


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    split = [word.partition("=") for word in words]
    for name, equals, _ in split:
        if not equals:
            raise SettingsError(f"{name}: write NAME=VALUE")
    return [(name, value) for name, _, value in split]


def _flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise SettingsError(f"feature gate {name} is true or false, not {value}")
    return value == "true"
