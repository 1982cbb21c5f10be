"""The command line: `python -m local_cluster up`, `down`, and what lies between."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from local_cluster import command_line, lifecycle, shells
from local_cluster.cluster import Cluster
from local_cluster.errors import LocalClusterError
from local_cluster.progress import say


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a failure is one sentence, since it names the log to read."""
    options = command_line.parser().parse_args(argv)
    try:
        return COMMANDS[options.command](options)
    except LocalClusterError as error:
        say(f"failed: {error}")
        return 1


def _up(options: argparse.Namespace) -> int:
    exports = shells.write_exports(lifecycle.up(command_line.settings_of(options)))
    print(f"For kubectl in this shell (or: source {options.dir / shells.FILE}):\n{exports}", end="")
    return 0


def _down(options: argparse.Namespace) -> int:
    lifecycle.down(options.dir, purge=options.purge)
    return 0


def _status(options: argparse.Namespace) -> int:
    """One line for each part; exit code 1 unless all are healthy."""
    cluster = Cluster.open(options.dir)
    print(f"KUBECONFIG={cluster.kubeconfig}\nserver {cluster.server}, host {cluster.host_address}")
    healthy = True
    for name in cluster.parts:
        part = cluster.part(name)
        state = "healthy" if part.is_healthy else "NOT HEALTHY" if part.pid else "NOT RUNNING"
        healthy = healthy and part.is_healthy
        print(f"{name:32} {state:12} pid {part.pid or '-'}  {part.log_path}")
    return 0 if healthy else 1


def _act_on_part(options: argparse.Namespace) -> int:
    part = Cluster.open(options.dir).part(options.part)
    acts: Mapping[str, Callable[[], None]] = {
        "start": part.start,
        "restart": part.restart,
        "kill": part.kill,
        "stop": part.stop,
        "cont": part.cont,
    }
    acts[options.command]()
    return 0


def _logs(options: argparse.Namespace) -> int:
    """Follow the logs of the named parts, or of all."""
    cluster = Cluster.open(options.dir)
    names = options.parts or cluster.parts
    logs = [str(cluster.part(name).log_path) for name in names]
    follow = ("--follow",) if options.follow else ()
    return subprocess.run(
        ["tail", "-n", str(options.lines), *follow, *logs], check=False
    ).returncode


def _kubectl(options: argparse.Namespace) -> int:
    cluster = Cluster.open(options.dir)
    program = [cluster.kubectl_program, f"--kubeconfig={cluster.kubeconfig}"]
    return subprocess.run([*program, *options.arguments], check=False).returncode


def _load_image(options: argparse.Namespace) -> int:
    Cluster.open(options.dir).load_image(options.archive)
    return 0


def _collect(options: argparse.Namespace) -> int:
    print(Cluster.open(options.dir).collect(options.target))
    return 0


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "up": _up,
    "down": _down,
    "status": _status,
    **dict.fromkeys(command_line.PART_COMMANDS, _act_on_part),
    "logs": _logs,
    "kubectl": _kubectl,
    "load-image": _load_image,
    "collect": _collect,
}

if __name__ == "__main__":
    sys.exit(main())
