"""Components that run: as a process in a node's namespaces, or as pods. One set of verbs."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from typing import Protocol, assert_never

from local_cluster import components, linux_nodes, processes
from local_cluster.addresses import Addresses
from local_cluster.components import Component, HttpReady, SocketReady
from local_cluster.debian import SEARCH_PATH
from local_cluster.errors import PartError
from local_cluster.files import tail
from local_cluster.health import is_healthy, wait_until
from local_cluster.layout import Layout
from local_cluster.parts import AliveProbe, HttpProbe, Probe, SocketProbe
from local_cluster.processes import Process

READY_SECONDS = 60.0
STOP_SECONDS = 15.0


class ComponentHandle(Protocol):
    """What tests do with a component, however it runs."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Start, or start again after `stop`."""

    def stop(self) -> None:
        """SIGTERM and time to end well; it stays away until `start`."""

    def kill(self) -> None:
        """SIGKILL. It comes back at once, as a container does."""

    def restart(self) -> None:
        """Stop and start."""

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Raises with the log's end when it is not ready in time."""

    def logs(self) -> str:
        """Everything that it printed so far."""


class ComponentProcess:
    """A component as a process of the host, inside a node, under its ServiceAccount."""

    def __init__(
        self, layout: Layout, addresses: Addresses, component: Component, kubeconfig: Path
    ) -> None:
        self._layout = layout
        self._addresses = addresses
        self._component = component
        self._kubeconfig = kubeconfig
        self._node = component.node or "node-a"
        # Of this "pod": stays over restarts of the process, as a container's does.
        self._uid = str(uuid.uuid4())
        self._session: int | None = None

    @property
    def name(self) -> str:
        return f"component-{self._component.name}-{self._node}"

    @property
    def log_path(self) -> Path:
        return self._layout.log(self.name)

    @property
    def pid(self) -> int | None:
        """As the host sees it, for figures from /proc."""
        process = self._process()
        return process.pid if process else None

    def start(self) -> None:
        if self._process():
            return
        told = components.environment(self._component, self._node, self._uid, self._kubeconfig)
        argv = self._component.argv
        if self._component.cwd is not None:
            argv = ("env", f"--chdir={self._component.cwd}", *argv)
        entered = linux_nodes.inside(self._layout, self._node, argv)
        env = {"PATH": SEARCH_PATH, **told}
        outer = processes.start(entered, self.log_path, env, self._layout.id)
        inner = processes.only_child(outer)
        processes.save(self._layout.record(self.name), inner, processes.COMPONENT)
        self._session = outer.pid

    def stop(self) -> None:
        if process := self._process():
            process.end(STOP_SECONDS)
        self._kill_children()
        self._layout.record(self.name).unlink(missing_ok=True)

    def kill(self) -> None:
        if process := self._process():
            process.kill()
        self._kill_children()
        self.start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def signal(self, number: signal.Signals) -> None:
        """Any signal, such as SIGSTOP and SIGCONT. Only a process takes them."""
        if process := self._process():
            process.signal(number)
        if number is signal.SIGCONT and self._session is not None:
            # nsenter, its parent, stops itself together with it, and would never reap it then.
            processes.identify(self._session).signal(number)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        wait_until(lambda: self._is_ready() or self._process() is None, seconds)
        if self._process() is None or not self._is_ready():
            state = "ended" if self._process() is None else f"is not ready in {seconds:.0f} s"
            raise PartError(f"{self.name} {state}; see {self.log_path}\n{tail(self.log_path)}")

    def logs(self) -> str:
        return self.log_path.read_text(errors="replace")

    def _kill_children(self) -> None:
        """What a container's end would end, too: ports and locks are free again."""
        if self._session is not None:
            processes.kill_all(processes.in_session(self._session))

    def _process(self) -> Process | None:
        found = processes.load(self._layout.record(self.name))
        return found[0] if found and found[0].is_alive() else None

    def _is_ready(self) -> bool:
        holder = linux_nodes.first_process(self._layout, self._node)
        root = linux_nodes.root_of(holder) if holder else Path("/")
        return self._process() is not None and is_healthy(self._probe(), root)

    def _probe(self) -> Probe:
        ready = self._component.ready
        match ready:
            case None:
                return AliveProbe()
            case SocketReady(path):
                return SocketProbe(path)
            case HttpReady(port, path, scheme):
                index = ord(self._node[-1]) - ord("a")
                return HttpProbe(f"{scheme}://{self._addresses.node(index)}:{port}{path}")
            case _:
                assert_never(ready)
