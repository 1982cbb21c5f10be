"""Pods with claims that come and go all the time, and what went wrong with any of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from typing import Any

import pytest

from local_cluster.api import BUSYBOX_IMAGE, ApiError, Cluster
from local_cluster.apiserver import ApiServer
from local_cluster.errors import ConditionTimeoutError

NAMESPACE = "busy"
QUEUES = ("red", "blue")
LIMIT = 2
ALIVE = 5
"""Pods that are there at one time: more than both queues may have running."""
DEVICES = [f"echo {number}" for number in range(8)]
QUEUE = "moorage.dev/queue"
SECONDS = 180.0

Object = dict[str, Any]


@dataclass
class Seen:
    """What a load has seen so far.

    Attributes:
        refused: Creations that were refused or got no answer: when (monotonic seconds) and why.
        wrong: What must never be seen, as sentences.
        done: How many pods have come to their good end.
        nodes: Where they did.
    """

    refused: list[tuple[float, str]] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)
    done: int = 0
    nodes: set[str] = field(default_factory=set)


class Load:
    """Keeps some pods alive, in a namespace whose pods the webhook gives a scheduler and a gate."""

    def __init__(self, cluster: Cluster, *, claims: bool) -> None:
        self._cluster = cluster
        self._claims = claims
        self._numbers = count()
        self._ends = threading.Event()
        self._abandoned = False
        self._is_away = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self.seen = Seen()

    def start(self) -> None:
        self._cluster.apply([*settings(), *([shared_claim(), template()] if self._claims else [])])
        for queue in QUEUES:
            self._cluster.apply([self._keeper(queue)])
            self._cluster.wait(pod_of(queue), "condition=Ready", namespace=NAMESPACE, seconds=120)
        self._thread.start()

    def goes_on(self, pods: int = 3) -> None:
        """Wait until some more pods came to their good end."""
        before, wanted = str(self.seen), self.seen.done + pods
        try:
            self._cluster.wait_until(
                f"{pods} more pods end well", lambda: self.seen.done >= wanted, seconds=SECONDS
            )
        except ConditionTimeoutError as error:
            lives = f"who makes them {'lives' if self._thread.is_alive() else 'has died'}"
            pytest.fail(f"{error}; before: {before}; by now: {self.seen}; {lives}")

    def api_restarts(self, restart: Callable[[], object]) -> None:
        """Restart the API server; what gets no answer meanwhile is not held against anything."""
        self._is_away.set()
        restart()
        self.goes_on()
        self._is_away.clear()
        self.seen.refused.clear()

    def end(self) -> None:
        """No more pods; those that are there end."""
        self._ends.set()
        self._thread.join()

    def abandon(self) -> None:
        """The test has failed: what is left is nobody's."""
        self._abandoned = True
        self.end()

    def _run(self) -> None:
        with self._cluster.api() as api:
            while not self._ends.is_set():
                self._look_unless_away(api)
                # Whoever makes pods in a cluster has a pace, too.
                self._ends.wait(0.2)
            deadline = time.monotonic() + SECONDS
            while not self._abandoned and (alive := self._look(api, makes=False)):
                if time.monotonic() > deadline:
                    self.seen.wrong.add(f"{', '.join(alive)} did not end")
                    return
                time.sleep(0.2)

    def _look_unless_away(self, api: ApiServer) -> None:
        try:
            self._look(api)
        except (ApiError, OSError, HTTPException):
            if not self._is_away.is_set():
                raise

    def _look(self, api: ApiServer, *, makes: bool = True) -> list[str]:
        """Once: what is wrong, what has ended, what is to be made. Returns who is left."""
        alive = []
        for pod in api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                continue
            self.seen.wrong.update(complaints(pod))
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
                self.seen.done += pod["status"]["phase"] == "Succeeded"
                self.seen.nodes.add(pod["spec"].get("nodeName", "none"))
            elif name.startswith("load-"):
                alive.append(name)
        self.seen.wrong.update(self._overcharged(api))
        for _ in range(ALIVE - len(alive) if makes else 0):
            self._make(api)
        return alive

    def _overcharged(self, api: ApiServer) -> Iterator[str]:
        if not self._claims:
            return
        path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
        items = api.get(path)["items"]
        owners = [
            item["metadata"].get("labels", {}).get(QUEUE)
            for item in items
            if "allocation" in item.get("status", {})
        ]
        for queue in QUEUES:
            if (used := owners.count(queue)) > LIMIT:
                yield f"{queue} is charged {used} claims of {LIMIT}"
        for item in items:
            if item["metadata"]["name"] == "shared":
                owner = item["metadata"].get("labels", {}).get(QUEUE)
                if owner != QUEUES[0]:
                    yield f"the shared claim is charged to {owner}"

    def _make(self, api: ApiServer) -> None:
        try:
            api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", self._next())
        except (ApiError, OSError) as error:
            self.seen.refused.append((time.monotonic(), str(error)))

    def _next(self) -> Object:
        number = next(self._numbers)
        queue = QUEUES[number % len(QUEUES)]
        name = f"load-{number}"
        command = ["sleep", "1"]
        if not self._claims or (number % 3 == 0 and not self._cluster.settings.has_dra_by_hand):
            return pod(name, queue, command, resource=True)
        if number % 3 < 2:
            return pod(name, queue, command, {"resourceClaimTemplateName": "echo"})
        return pod(name, queue, command, {"resourceClaimName": "shared"})

    def _keeper(self, queue: str) -> Object:
        """A pod that goes on for the whole time; those of both queues share a claim."""
        command = ["sleep", "100000"]
        if self._claims:
            return pod(f"keeper-{queue}", queue, command, {"resourceClaimName": "shared"})
        return pod(f"keeper-{queue}", queue, command, resource=True)

    def charges(self) -> dict[str, int]:
        """What is charged when nobody but the keepers is there."""
        return {
            queue: (self._cluster.get("queue", queue) or {})["status"]["usage"].get("echo", 0)
            for queue in QUEUES
        }


def pod_of(queue: str) -> str:
    return f"pod/keeper-{queue}"


def complaints(found: Object) -> Iterator[str]:
    name, status = found["metadata"]["name"], found["status"]
    if status["phase"] == "Failed":
        yield f"{name} failed: {status.get('reason')} {status.get('message')}"
    for container in status.get("containerStatuses", ()):
        if container["restartCount"]:
            yield f"{name} was started again"


@contextmanager
def under_load(cluster: Cluster, *, claims: bool) -> Iterator[Load]:
    """The load goes on while this is open; it has ended behind it, and nobody looked at it yet."""
    load = Load(cluster, claims=claims)
    load.start()
    try:
        yield load
    except BaseException:
        load.abandon()
        raise
    load.end()


def settings() -> list[Object]:
    """A Configuration, the queues, and the namespace, whose pods wait for quota."""
    labels = {"moorage.dev/managed": "true", QUEUE: QUEUES[0]}
    details = f"descriptions: {DEVICES}\nshared: true\n"
    handler = {"name": "debugEcho", "discoveryDetails": details}
    queues = [
        {
            "apiVersion": "moorage.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": queue},
            "spec": {
                "namespaceSelector": {},
                "resources": [{"deviceClass": "echo", "quota": LIMIT, "limit": LIMIT}],
            },
        }
        for queue in QUEUES
    ]
    return [
        {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": "echo", "namespace": "default"},
            "spec": {"discoveryHandler": handler},
        },
        *queues,
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": labels},
        },
    ]


def shared_claim() -> Object:
    requests = [{"name": "echo", "exactly": {"deviceClassName": "echo"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared", "namespace": NAMESPACE},
        "spec": {"devices": {"requests": requests}},
    }


def template() -> Object:
    claim = shared_claim()
    metadata = {"name": "echo", "namespace": NAMESPACE}
    return {
        **claim,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": claim["spec"]},
    }


def pod(
    name: str,
    queue: str,
    command: list[str],
    source: Object | None = None,
    *,
    resource: bool = False,
) -> Object:
    container: Object = {"name": "main", "image": BUSYBOX_IMAGE, "command": command}
    spec: Object = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    if resource:
        container["resources"] = {"limits": {"akri.sh/echo": 1}}
    if source:
        container["resources"] = {"claims": [{"name": "echo"}]}
        spec["resourceClaims"] = [{"name": "echo", **source}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {QUEUE: queue}},
        "spec": {**spec, "containers": [container]},
    }
