"""Two replicas, and what is done to them: killed, stopped, continued, started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local_cluster.api import Cluster
from local_cluster.component_handles import ComponentProcess
from tests.e2e.failover import installation
from tests.e2e.failover.installation import LEASE, PLACES, SCHEDULER, Place
from tests.e2e.sharing import dashboards
from tests.e2e.sharing.extender import Extender

READY_SECONDS = 45.0
LAST_LINES = 25


@dataclass(frozen=True)
class Replica:
    """A kube-scheduler and the plugin beside it.

    Attributes:
        extender: The test's hand on the calls between them.
        proxy: The process of it.
    """

    cluster: Cluster
    place: Place
    scheduler: ComponentProcess
    plugin: ComponentProcess
    proxy: ComponentProcess
    extender: Extender

    @property
    def node(self) -> str:
        return self.place.node

    @property
    def all(self) -> tuple[ComponentProcess, ...]:
        return (self.scheduler, self.plugin, self.proxy)

    def readiness(self) -> str:
        """What the plugin says of itself: "ok", why it does not serve, or "" for no answer."""
        ask = ("curl", "--silent", "--max-time", "2", f"{self.place.pages_url}/readyz")
        return self.cluster.node(self.node).exec(ask, check=False).stdout

    def leads(self) -> bool:
        return self.readiness() == "ok"

    def follows(self) -> bool:
        return " holds Lease " in self.readiness()

    def mend(self) -> None:
        """Continue what was stopped, start what was killed."""
        for process in self.all:
            process.signal(signal.SIGCONT)
            process.start()

    def describe(self) -> Iterator[str]:
        for process in self.all:
            yield f"{process.name} ends so:"
            yield from process.logs().splitlines()[-LAST_LINES:]


class Replicas:
    """Both of them."""

    def __init__(self, cluster: Cluster, both: tuple[Replica, ...]) -> None:
        self._cluster = cluster
        self._both = both

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._both)

    def roles(self) -> tuple[Replica, Replica]:
        """Bring both to health; the one that leads, and the one that follows."""
        for replica in self:
            replica.mend()
        return self._cluster.wait_until("one leads", self._roles, seconds=READY_SECONDS)

    def _roles(self) -> tuple[Replica, Replica] | None:
        first, second = self
        for leader, other in ((first, second), (second, first)):
            if leader.leads() and other.follows() and other.extender.is_up():
                return leader, other
        return None


@contextmanager
def running(cluster: Cluster) -> Iterator[Replicas]:
    """Both replicas, for as long as this lasts."""
    both = tuple(_start(cluster, place) for place in PLACES)
    try:
        yield Replicas(cluster, both)
    finally:
        for replica in both:
            for process in replica.all:
                process.stop()


def _start(cluster: Cluster, place: Place) -> Replica:
    extender = Extender(cluster.node(place.node).address, place.proxy_port)
    # A test may hold a call for longer than an administrator would wait for it.
    asked = installation.extender(extender.url, timeout="60s")
    configured = installation.configuration(
        [asked], podInitialBackoffSeconds=1, podMaxBackoffSeconds=2
    )
    return Replica(
        cluster,
        place,
        plugin=installation.plugin(
            cluster, place, LEASE, SCHEDULER, *dashboards.answers(cluster, place.node)
        ),
        proxy=installation.proxy(cluster, place),
        scheduler=installation.kube_scheduler(cluster, place, configured),
        extender=extender,
    )
