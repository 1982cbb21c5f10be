"""A tenant who means harm: claims as costly to judge as the API server admits, a disk that flaps.

He is at it all the while that users are. At a rest nothing of his is left: what must hold then is
what holds without him.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from threading import Event, Thread

from local_cluster import loop_devices
from local_cluster.api import ApiError
from local_cluster.apiserver import ApiServer
from tests.chaos import scene, watching
from tests.chaos.objects import QUEUE, Object
from tests.chaos.scene import Scene

NAME = "tenant"
NAMESPACE = "chaos-tenant"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
NO_ANSWER = (*watching.NO_ANSWER, ApiError)

MOST_PODS = 6
MOST_SELECTORS = 32
"""As many as the API server lets a request have."""
PAUSE_SECONDS = 0.5
FLAP_SECONDS = 0.01
"""A hundred changes a second, as far as the kernel follows."""
CLEAN_SECONDS = 60.0

FORTY = f"[{','.join('1' for _ in range(40))}]"
NESTED = f"{FORTY}.map(a, {FORTY}.map(b, {FORTY}.map(c, true))).size()"
REGEX = f"device.driver.matches('{'[a-z]{1,100}' * 800}')"


@dataclass
class Tenant:
    """His queue is guaranteed devices, so that room is sought for his pods by what they ask for."""

    scene: Scene
    random: Random

    def begin(self) -> None:
        """Make his queue and namespace. Raises ValueError where nobody can ask by claims."""
        if not self.scene.has_claims:
            raise ValueError("a tenant asks by claims, which this Kubernetes does not have")
        labels = {"moorage.dev/managed": "true", QUEUE: NAME}
        shares = [{"deviceClass": "echo", "quota": 2}, {"deviceClass": "disk", "quota": 1}]
        spec: Object = {"namespaceSelector": {}, "resources": shares}
        namespace = {"metadata": {"name": NAMESPACE, "labels": labels}}
        head = {"apiVersion": "v1", "kind": "Namespace"}
        self.scene.cluster.apply([{**head, **namespace}, scene.queue(NAME, spec)])

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """He does harm for as long as this lasts."""
        over = Event()
        threads = [Thread(target=work, args=(over,)) for work in (self._ask, self._flap)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def leave(self) -> None:
        """Take away what he made, however long the API server is away (a minute at most)."""
        deadline = time.monotonic() + CLEAN_SECONDS
        with self.scene.cluster.api() as api:
            while not _is_done(partial(_clean, api)) and time.monotonic() < deadline:
                time.sleep(1)

    def _ask(self, over: Event) -> None:
        with self.scene.cluster.api() as api:
            for number in count(1):
                if over.wait(PAUSE_SECONDS):
                    return
                _is_done(partial(self._make, api, f"{NAME}-{number}"))

    def _make(self, api: ApiServer, name: str) -> None:
        there = sorted(body["metadata"]["name"] for body in api.get(PODS)["items"])
        for old in there[: len(there) + 1 - MOST_PODS]:
            api.delete(f"{PODS}/{old}?gracePeriodSeconds=0")
            api.delete(f"{CLAIMS}/{old}")
        claim = scene.claim(NAMESPACE, name, self.random.choice(scene.CLASSES))
        (request,) = claim["spec"]["devices"]["requests"]
        request["exactly"]["selectors"] = self._selectors()
        api.create(CLAIMS, claim)
        asks = {"resourceClaimName": name}
        api.create(PODS, scene.pod(NAMESPACE, name, asks, 1000, owner=NAME, preemptible=True))

    def _selectors(self) -> list[Object]:
        """None is like one before: what is known of those says nothing of them."""
        mark = self.random.randrange(1_000_000)
        nested = [f"{NESTED} == {mark + n}" for n in range(self.random.choice((1, MOST_SELECTORS)))]
        expressions = self.random.choice((nested, [f"{REGEX} || device.driver == '{mark}'"]))
        return [{"cel": {"expression": expression}} for expression in expressions]

    def _flap(self, over: Event) -> None:
        """A disk of the scene's Configuration comes and goes."""
        with loop_devices.plugged() as disk:
            backing = self.scene.folder / disk.name
            backing.write_bytes(disk.name.encode().ljust(4096, b"\0"))
            while not over.wait(FLAP_SECONDS):
                # Somebody may have it open for a moment.
                with suppress(OSError):
                    disk.attach(backing)
                over.wait(FLAP_SECONDS)
                with suppress(OSError):
                    disk.detach()


def _clean(api: ApiServer) -> None:
    for path in (f"{PODS}?gracePeriodSeconds=0", CLAIMS):
        api.delete(path)
    left = [*api.get(PODS)["items"], *api.get(CLAIMS)["items"]]
    if left:
        raise ApiError(409, "Conflict", "his pods and claims are there still")


def _is_done(what: Callable[[], object]) -> bool:
    """Do it; False where the API server did not answer, or refused."""
    try:
        what()
    except NO_ANSWER:
        return False
    return True
