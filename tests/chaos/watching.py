"""All objects that matter, followed: lists, watches, and the row of changes between them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field

from local_cluster.api import ApiError, Cluster
from local_cluster.apiserver import ApiServer
from moorage_demo.installation import NAMESPACE
from tests.chaos.bindings import Change
from tests.chaos.objects import WORKLOADS, Key, Object, Snapshot, key
from tests.chaos.scene import HAVE_WORKLOADS, workloads_path

CORE = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "queues": "/apis/moorage.dev/v1alpha1/queues",
    "configurations": "/apis/akri.sh/v0/configurations",
    "instances": "/apis/akri.sh/v0/instances",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "leases": f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
}
DRA = {
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
}
FOLLOWED = (
    *("pods", "resourceclaims", "queues", "namespaces"),
    *("configurations", "instances", "podgroups", WORKLOADS),
)
"""What a binding is judged by."""
QUIET_KINDS = ("pods", "resourceclaims", "queues", "instances", "resourceslices")
QUERY = "watch=1&allowWatchBookmarks=true&timeoutSeconds=60"
RETRY_SECONDS = 0.3
LATE_SECONDS = 5.0
"""For so long changes are held back, since the watches do not hear of them in one order."""
NO_ANSWER = (OSError, http.client.HTTPException, ValueError)


def paths(cluster: Cluster) -> dict[str, str]:
    """Where the kinds are listed that this cluster serves."""
    version = cluster.settings.kubernetes
    workloads = {WORKLOADS: workloads_path()} if version in HAVE_WORKLOADS else {}
    return {**CORE, **(DRA if version != "1.33" else {}), **workloads}


def snapshot(cluster: Cluster) -> Snapshot:
    """Everything now. Raises OSError where the API server does not answer."""
    with cluster.api() as api:
        return Snapshot({kind: _listed(api, path)[0] for kind, path in paths(cluster).items()})


def holder(snapshot: Snapshot) -> str:
    """The process that leads the scheduler side; "" for none."""
    names = {lease["metadata"]["name"]: lease for lease in snapshot.all("leases")}
    return str(names.get("moorage-scheduler", {}).get("spec", {}).get("holderIdentity", ""))


def _listed(api: ApiServer, path: str) -> tuple[dict[Key, Object], int]:
    answer = api.get(path)
    found = {key(body): body for body in answer["items"]}
    return found, int(answer["metadata"]["resourceVersion"])


@dataclass
class Watch:
    """Follows one kind in a thread; what it hears goes into a common list."""

    cluster: Cluster
    kind: str
    path: str
    heard: list[Change]
    lock: threading.Lock
    ends: threading.Event
    known: dict[Key, Object] = field(default_factory=dict)
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, name=f"watch-{self.kind}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        version = 0
        while not self.ends.is_set():
            try:
                with self.cluster.api() as api:
                    version = version or self._relist(api)
                    for line in api.lines(f"{self.path}?{QUERY}&resourceVersion={version}"):
                        version = self._told(line, version)
            except ApiError:
                version = 0
            except NO_ANSWER:
                self.ends.wait(RETRY_SECONDS)

    def _relist(self, api: ApiServer) -> int:
        """What was missed comes without its order, so nothing is judged by it."""
        found, version = _listed(api, self.path)
        gone = [(name, None) for name in self.known.keys() - found.keys()]
        for name, body in (*found.items(), *gone):
            self._add(name, body, version, is_exact=False)
        return version

    def _told(self, line: bytes, version: int) -> int:
        event = json.loads(line)
        if event["type"] == "ERROR":
            return 0
        body = event["object"]
        at = int(body["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            self._add(key(body), None if event["type"] == "DELETED" else body, at)
        return max(at, version)

    def _add(self, name: Key, body: Object | None, at: int, *, is_exact: bool = True) -> None:
        before = self.known.get(name)
        if body is None:
            self.known.pop(name, None)
        else:
            self.known[name] = body
        if before is None or body is None or before != body:
            with self.lock:
                self.heard.append(Change(at, time.monotonic(), self.kind, name, body, is_exact))


class Follower:
    """Follows all kinds for as long as it is open."""

    def __init__(self, cluster: Cluster) -> None:
        self._heard: list[Change] = []
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._last = time.monotonic()
        known = paths(cluster)
        kinds = [kind for kind in {*FOLLOWED, *QUIET_KINDS} if kind in known]
        self._watches = [
            Watch(cluster, kind, known[kind], self._heard, self._lock, self._ends) for kind in kinds
        ]

    def __enter__(self) -> Follower:
        for watch in self._watches:
            watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()

    def taken(self, *, everything: bool = False) -> list[Change]:
        """What was heard since the last time, and is old enough to be whole."""
        until = time.monotonic() - (0 if everything else LATE_SECONDS)
        self.quiet_seconds()  # of what is taken now nothing is known later
        with self._lock:
            last = max((c.version for c in self._heard if c.at <= until), default=0)
            # What is earlier in the row and was heard later by another watch comes with it.
            found = [change for change in self._heard if change.version <= last]
            self._heard[:] = [change for change in self._heard if change.version > last]
        return found

    def quiet_seconds(self) -> float:
        """Since the last change of what is to come to rest."""
        with self._lock:
            moving = [change.at for change in self._heard if change.kind in QUIET_KINDS]
        self._last = max([self._last, *moving])
        return time.monotonic() - self._last
