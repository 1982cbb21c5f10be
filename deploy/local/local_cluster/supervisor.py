"""Starts, stops and signals the parts of one cluster; knows them by their records."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path

from local_cluster import linux_nodes, processes
from local_cluster.blueprint import Blueprint
from local_cluster.debian import SEARCH_PATH
from local_cluster.errors import PartError
from local_cluster.files import tail, write_atomically
from local_cluster.health import is_healthy, wait_until
from local_cluster.linux_commands import in_network
from local_cluster.parts import PartSpec
from local_cluster.plan import planned_parts
from local_cluster.processes import Process

HEALTHY_SECONDS = 90.0
PATIENCE_SECONDS = 10.0
# Throw-away parts need no long goodbye; kube-apiserver would take up to a minute.
END_SECONDS = 3.0


class Supervisor:
    """Acts on the parts of one blueprint."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.layout = blueprint.layout
        self.parts = {part.name: part for part in planned_parts(blueprint)}

    def spec(self, name: str) -> PartSpec:
        if name not in self.parts:
            raise PartError(f"no part {name}; parts are {', '.join(self.parts)}")
        return self.parts[name]

    def process(self, name: str) -> Process | None:
        """The part's process, if it lives."""
        found = processes.load(self.layout.record(name))
        return found[0] if found and found[0].is_alive() else None

    def is_current(self, spec: PartSpec) -> bool:
        """Alive, and started from this very spec."""
        found = processes.load(self.layout.record(spec.name))
        return found is not None and found[1] == spec.fingerprint and found[0].is_alive()

    def is_healthy(self, spec: PartSpec) -> bool:
        return self.process(spec.name) is not None and is_healthy(spec.probe, self._root(spec))

    def ensure(self, specs: Iterable[PartSpec]) -> tuple[str, ...]:
        """Bring parts that may run side by side to health; names of those that were started."""
        wanted = tuple(specs)
        stale = [spec for spec in wanted if not self._is_well(spec)]
        for spec in stale:
            self.end(spec.name)
            self.start(spec)
        for spec in stale:
            self.wait_healthy(spec)
        return tuple(spec.name for spec in stale)

    def _is_well(self, spec: PartSpec) -> bool:
        """Asked for a while: on a busy machine one answer may come too late."""
        return self.is_current(spec) and wait_until(lambda: self.is_healthy(spec), PATIENCE_SECONDS)

    def start(self, spec: PartSpec) -> Process:
        for path, content in spec.files.items():
            write_atomically(path, content, 0o644)
        env = {"PATH": SEARCH_PATH, **spec.env}
        outer = processes.start(
            self._entered(spec), self.layout.log(spec.name), env, self.layout.id
        )
        process = processes.only_child(outer) if spec.node else outer
        processes.save(self.layout.record(spec.name), process, spec.fingerprint)
        return process

    def end(self, name: str) -> None:
        """Stop for good and forget. Nothing happens when it does not run."""
        if process := self.process(name):
            process.end(END_SECONDS)
        self.layout.record(name).unlink(missing_ok=True)

    def restart(self, name: str) -> None:
        spec = self.spec(name)
        self.end(name)
        self.start(spec)
        self.wait_healthy(spec)

    def signal(self, name: str, number: signal.Signals) -> None:
        process = self.process(name)
        if process is None or not process.signal(number):
            raise PartError(f"{name} does not run; see {self.layout.log(name)}")
        if number is signal.SIGCONT:
            # nsenter, its parent, stops itself together with it, and would never reap it then.
            processes.session_leader(process).signal(number)

    def kill(self, name: str) -> None:
        """SIGKILL, and forget it, so that `revive` knows that somebody wanted it dead."""
        if process := self.process(name):
            process.kill()
        self.layout.record(name).unlink(missing_ok=True)

    def revive(self) -> tuple[str, ...]:
        """Start again what died by itself, as schedulers do that could not renew their lease."""
        return self.ensure(
            spec
            for spec in self.parts.values()
            if self.layout.record(spec.name).exists() and self.process(spec.name) is None
        )

    def wait_healthy(self, spec: PartSpec, seconds: float = HEALTHY_SECONDS) -> None:
        """Raises when the part dies or takes too long; the log says why."""
        wait_until(lambda: self.is_healthy(spec) or self.process(spec.name) is None, seconds)
        if not self.is_healthy(spec):
            log = self.layout.log(spec.name)
            died = self.process(spec.name) is None
            state = "died" if died else f"is not healthy after {seconds:.0f} s"
            raise PartError(f"{spec.name} {state}; see {log}\n{tail(log)}")

    def _entered(self, spec: PartSpec) -> tuple[str, ...]:
        if spec.node is None:
            return in_network(self.layout.network_namespace, spec.argv)
        return linux_nodes.inside(self.layout, spec.node, spec.argv)

    def _root(self, spec: PartSpec) -> Path:
        holder = linux_nodes.first_process(self.layout, spec.node) if spec.node else None
        return linux_nodes.root_of(holder) if holder else Path("/")
