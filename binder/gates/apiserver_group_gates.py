"""Removes the gates of pods whose PodGroup kube-scheduler would not try otherwise.

PodChanged ──► the pod's group ──left_behind──► gates removed, one after the other
"""

from __future__ import annotations

import logging
from typing import NoReturn

from binder.gates.apiserver_gate_writes import GateStaysError, GateWrites
from kube.calls.api import ApiError
from kube.reconciling.api import Done, Failed, Reconciler, Result, failed_call
from scheduler_plugin.objects.api import PodView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.api import left_behind

logger = logging.getLogger(__name__)


class GroupGates:
    """Lets all pods of a PodGroup of Kubernetes' own API leave the gate after the first one."""

    def __init__(self, writes: GateWrites) -> None:
        self._writes = writes
        self._queue: Reconciler[tuple[str, str]] = Reconciler(
            "group-gates", self._reconcile, why_not=writes.why_not
        )

    def changed(self, uid: PodUid) -> None:
        """A pod changed; it may have left the gate, or come to it after others have left."""
        pod = self._writes.cluster.world.facts.pod(uid)
        if pod is not None:
            self._add(pod)

    async def run(self) -> NoReturn:
        """Remove gates until cancelled; to be run once the world is in sync."""
        for pod in self._writes.cluster.world.facts.pods():
            self._add(pod)
        await self._queue.run()

    def _add(self, pod: PodView) -> None:
        if pod.scheduling_group and pod.may_be_bound:
            self._queue.add((pod.namespace, pod.scheduling_group))

    async def _reconcile(self, key: tuple[str, str]) -> Result:
        facts = self._writes.cluster.world.facts
        pods = filter(None, map(facts.pod, facts.pods_in_group(key)))
        pod = next((pod for pod in pods if pod.scheduling_group), None)
        for removal in left_behind(pod, facts) if pod is not None else ():
            try:
                await self._writes.remove_gate(removal)
            except GateStaysError as error:
                return Failed(error)
            except ApiError as error:
                return failed_call(error)
            logger.info("let go with its group pod=%s/%s", removal.namespace, removal.name)
        return Done()
