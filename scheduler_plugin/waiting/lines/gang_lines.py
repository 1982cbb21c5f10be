"""Which lines wait for what becomes of other pods: those of pods that go together.

Whatever happens to one pod of a group, the others may go by now, or no longer: it came, it may be
judged by now, it was let go or bound, it ended. A change costs its own group.
"""

from __future__ import annotations

from typing import TypeAlias

from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.judging.gangs import is_of_gang
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods

GroupKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


class GangLines:
    """The groups of pods that go together, as they were when somebody looked."""

    def __init__(self, facts: Facts, waiting: WaitingPods) -> None:
        self._facts = facts
        self._waiting = waiting
        self._groups: dict[PodUid, GroupKey] = {}

    def __bool__(self) -> bool:
        """Whether there is any such pod."""
        return bool(self._groups)

    def note(self, uid: PodUid) -> None:
        """A pod came, changed, went, or what is decided of it did."""
        pod, before = self._facts.pod(uid), self._groups.pop(uid, None)
        key = before
        if pod is not None and pod.group and is_of_gang(pod, self._facts):
            key = self._groups[uid] = (pod.namespace, pod.group)
        if key is not None:
            self._waiting.wake_gangs(self._facts.pods_in_group(key))
