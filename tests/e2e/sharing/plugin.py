"""The plugin's process, as stories treat it: stopped, killed, started with other flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local_cluster.api import Cluster, ConditionTimeoutError
from local_cluster.component_handles import ComponentHandle
from tests.e2e.sharing import dashboards
from tests.e2e.sharing.installation import NODE, PAGES_URL, plugin_component

LAST_LINES = 40
READY_SECONDS = 60.0


@dataclass
class Plugin:
    """The plugin beside kube-scheduler `moorage`.

    Attributes:
        handle: Its process.
    """

    cluster: Cluster
    handle: ComponentHandle

    @classmethod
    def start(cls, cluster: Cluster) -> Plugin:
        component = plugin_component(*dashboards.answers(cluster))
        return cls(cluster, cluster.start_component(component))

    def is_ready(self) -> bool:
        """Whether it says so. It listens on loopback, so the question comes from its node."""
        ask = ("wget", "-q", "-T", "2", "-O", "-", f"{PAGES_URL}/readyz")
        return self.cluster.node(NODE).exec(ask, check=False).returncode == 0

    def page(self, path: str, body: str = "") -> str:
        """What it answers to GET, or to a POST of a body; what `wget` says where it refuses."""
        sent = (f"--post-data={body}",) if body else ()
        ask = ("wget", "-T", "2", "-O", "-", *sent, f"{PAGES_URL}{path}")
        done = self.cluster.node(NODE).exec(ask, check=False)
        return str(done.stdout if done.returncode == 0 else done.stderr)

    def wait_ready(self) -> None:
        try:
            self.cluster.wait_until("the plugin is ready", self.is_ready, seconds=READY_SECONDS)
        except ConditionTimeoutError as error:
            log = "\n".join(self.last_lines())
            raise AssertionError(f"{error}\nits log ends so:\n{log}") from error

    def kill(self) -> None:
        """SIGKILL; it comes back at once, as a container does."""
        self.handle.kill()

    def restart(self) -> None:
        """Stop well, start, and wait."""
        self.handle.restart()
        self.wait_ready()

    @contextmanager
    def down(self) -> Iterator[None]:
        """It does not run for as long as this lasts; ready again afterwards."""
        self.handle.stop()
        try:
            yield
        finally:
            self.handle.start()
            self.wait_ready()

    @contextmanager
    def started_with(self, *flags: str) -> Iterator[Plugin]:
        """Another process with flags of its own in its place."""
        self.handle.stop()
        other = Plugin(self.cluster, self.cluster.start_component(plugin_component(*flags)))
        try:
            other.wait_ready()
            yield other
        finally:
            other.handle.stop()
            self.handle.start()
            self.wait_ready()

    def last_lines(self) -> list[str]:
        return self.handle.logs().splitlines()[-LAST_LINES:]
