"""What tests hold in hand: a part of the cluster, or one of its nodes."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local_cluster import linux_nodes
from local_cluster.blueprint import PlannedNode
from local_cluster.debian import SEARCH_PATH
from local_cluster.errors import MachineError, PartError
from local_cluster.layout import Layout
from local_cluster.supervisor import Supervisor

# SIGKILL when the parent dies. The parent, nsenter, is outside the PID namespace, so it has
# number 0; any other number means that it died before the kernel was told.
TIED_TO_PARENT = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("sh", "-c", 'test "$PPID" = 0 && exec "$@"', "sh"),
)


class Part:
    """One named part. Everything that starts it again returns when it is healthy."""

    def __init__(self, supervisor: Supervisor, name: str) -> None:
        supervisor.spec(name)
        self._supervisor = supervisor
        self.name = name

    @property
    def log_path(self) -> Path:
        return self._supervisor.layout.log(self.name)

    @property
    def pid(self) -> int | None:
        """As the host sees it; None while it does not run."""
        process = self._supervisor.process(self.name)
        return process.pid if process else None

    @property
    def is_healthy(self) -> bool:
        return self._supervisor.is_healthy(self._supervisor.spec(self.name))

    def start(self) -> None:
        """Start after `kill`. Nothing happens when it runs."""
        self._supervisor.ensure([self._supervisor.spec(self.name)])
        self._supervisor.revive()

    def restart(self) -> None:
        self._supervisor.restart(self.name)
        self._supervisor.revive()

    def kill(self) -> None:
        """SIGKILL. It stays dead until `start` or `restart`."""
        self._supervisor.kill(self.name)

    def stop(self) -> None:
        """SIGSTOP: it lives and keeps its connections, but answers nothing."""
        self._supervisor.signal(self.name, signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self._supervisor.signal(self.name, signal.SIGCONT)
        self._supervisor.wait_healthy(self._supervisor.spec(self.name))
        self._supervisor.revive()


class Node:
    """One real node: its namespaces, seen from the host."""

    def __init__(self, layout: Layout, planned: PlannedNode, address: str) -> None:
        self._layout = layout
        self._planned = planned
        self.name = planned.name
        self.address = address

    @property
    def kubelet_root(self) -> Path:
        """The host's path of this node's /var/lib/kubelet."""
        return self._planned.layout.kubelet_root

    @property
    def root(self) -> Path:
        """The host's path of this node's whole file system, short enough for UNIX sockets.

        Valid until the node's namespaces are made anew.
        """
        process = linux_nodes.first_process(self._layout, self.name)
        if process is None:
            raise PartError(f"{self.name} is not up; see {self._layout.log(self.name)}")
        return linux_nodes.root_of(process)

    def path(self, inside: str) -> Path:
        """The host's path of a file of this node."""
        return self.root / inside.lstrip("/")

    def argv(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The host's command that runs `argv` in this node, and ends it when it is ended."""
        told = {"PATH": SEARCH_PATH, **(env or {})}
        assignments = [f"{name}={value}" for name, value in told.items()]
        inner = (*TIED_TO_PARENT, "env", *assignments, *argv)
        return linux_nodes.inside(self._layout, self.name, inner)

    def exec(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout_seconds: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the host inside this node's namespaces."""
        done = subprocess.run(
            self.argv(argv, env),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )
        if check and done.returncode != 0:
            raise MachineError(f"{' '.join(argv)} on {self.name}: {done.stderr.strip()}")
        return done

    def popen(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a program of the host inside this node; ending the Popen ends it with SIGKILL."""
        return subprocess.Popen(self.argv(argv, env), **options)
