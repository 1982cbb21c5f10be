"""Bindings that were requested and whose outcome is unknown.

Such a pod counts as bound, since it may be using its devices. kube-scheduler retries it, and the
next Bind reads the pod. If the pod fits no node any more, there is no next Bind, and its devices
would be kept from other pods for as long as it waits. So the pod is read here, once no write of the
last attempt can arrive any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kube.calls.api import ApiError
from kube.due import Due
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

logger = logging.getLogger(__name__)

LATE_SECONDS = 120.0
"""Twice the default `--request-timeout` of an API server.

The request carries a timeout of two seconds, but a server that was stopped still reads what was
sent before.
"""

AGAIN_SECONDS = 10.0
"""How long after a failed read the next one comes."""


class UnknownBinds:
    """The attempts whose outcome is unknown."""

    def __init__(self, cluster: ClusterWorld, monotonic: Callable[[], float]) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._due: Due[PodUid] = Due()
        self._names: dict[PodUid, tuple[str, str]] = {}

    def requested(self, pod: PodView) -> None:
        """A binding is requested: from here on it may exist, however the call ends."""
        self._names[pod.uid] = (pod.namespace, pod.name)
        self._due.set(pod.uid, self._monotonic() + LATE_SECONDS)

    def resolved(self, pod: PodUid) -> None:
        """The outcome is known."""
        self._names.pop(pod, None)
        self._due.drop(pod)

    async def look(self) -> None:
        """Read the pods of attempts that are over; end the assumption of each unbound pod."""
        for pod in self._due.take(self._monotonic()):
            name = self._names.pop(pod)
            if self._cluster.world.assumptions.awaits_binding(pod):
                await self._look(pod, name)

    async def _look(self, uid: PodUid, name: tuple[str, str]) -> None:
        try:
            pod = await self._cluster.refresh_pod(*name)
        except ApiError as error:
            logger.warning("pod not read, its binding stays unknown pod=%s/%s: %s", *name, error)
            if uid not in self._due:
                self._names[uid] = name
                self._due.set(uid, self._monotonic() + AGAIN_SECONDS)
            return
        is_unbound = pod is None or pod.uid != uid or not pod.is_bound
        # kube-scheduler may have begun the next attempt meanwhile.
        if is_unbound and uid not in self._due:
            logger.info("pod is not bound pod=%s/%s podUID=%s", *name, uid)
            self._cluster.world.assumptions.forget(uid)
