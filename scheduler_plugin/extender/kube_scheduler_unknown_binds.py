"""Bindings that were asked for and of which nobody knows whether they came to be.

Such a pod is believed to be bound: it may be using its devices. kube-scheduler asks for it again,
and the next Bind looks; but where the pod fits no node any more nobody asks, and what it would use
would be kept from others for as long as it waits. So it is looked at here, once no write of the
last attempt can come any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kube.api import ApiError
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.due import Due
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

logger = logging.getLogger(__name__)

LATE_SECONDS = 120.0
"""Twice what an API server gives a request unless it is told otherwise (`--request-timeout`).

It was told to give up after two seconds; a server that stood still reads what was sent before.
"""

AGAIN_SECONDS = 10.0
"""How long after a look that was not answered the next one comes."""


class UnknownBinds:
    """The attempts of which no answer told the end."""

    def __init__(self, cluster: ClusterWorld, monotonic: Callable[[], float]) -> None:
        self._cluster = cluster
        self._monotonic = monotonic
        self._due: Due[PodUid] = Due()
        self._names: dict[PodUid, tuple[str, str]] = {}

    def asked(self, pod: PodView) -> None:
        """A binding is asked for: from here on it may come to be, whatever becomes of the call."""
        self._names[pod.uid] = (pod.namespace, pod.name)
        self._due.set(pod.uid, self._monotonic() + LATE_SECONDS)

    def answered(self, pod: PodUid) -> None:
        """It is known what became of it."""
        self._names.pop(pod, None)
        self._due.drop(pod)

    async def look(self) -> None:
        """Read the pods of the attempts that are over, and believe what is seen."""
        for pod in self._due.take(self._monotonic()):
            name = self._names.pop(pod)
            if self._cluster.world.assumptions.awaits_binding(pod):
                await self._look(pod, name)

    async def _look(self, uid: PodUid, name: tuple[str, str]) -> None:
        try:
            pod = await self._cluster.refresh_pod(*name)
        except ApiError as error:
            logger.warning("not known whether bound pod=%s/%s: %s", *name, error)
            if uid not in self._due:
                self._names[uid] = name
                self._due.set(uid, self._monotonic() + AGAIN_SECONDS)
            return
        is_unbound = pod is None or pod.uid != uid or not pod.is_bound
        # kube-scheduler may have asked for the next attempt meanwhile.
        if is_unbound and uid not in self._due:
            logger.info("not bound after all pod=%s/%s podUID=%s", *name, uid)
            self._cluster.world.assumptions.forget(uid)
