"""Which queue a pod has, as far as that is known.

What says it may not have been heard of yet: its namespace, or the PodGroup that it names. Then
nothing else is taken for the pod's queue instead, and nobody may use a queue: what is not known is
not judged. What was heard of and is gone by now is told apart, since nobody needs to wait for it.
What this process has forgotten, or never knew, counts as not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachetools import FIFOCache

from scheduler_plugin.objects.names import NO_QUEUE, AccountingSettings, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView

MOST_REMEMBERED = 10_000
"""Namespaces and PodGroups that are gone: more than have pods that are still to hear of it."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An object that a pod's queue follows from and that is not there.

    Attributes:
        gone: Whether it was there; else it is still to come, or to be heard of.
    """

    kind: str
    name: str
    gone: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


_NAMESPACE, _GROUP = "Namespace", "PodGroup"


class PodQueues:
    """Namespaces and PodGroups, and what pods' queues follow from them.

    Attributes:
        namespaces: By name.
        has_groups: Whether the cluster serves a kind of PodGroups; without one the annotation that
            names one means nothing.
    """

    def __init__(self, settings: AccountingSettings) -> None:
        self._settings = settings
        self.namespaces: dict[str, NamespaceView] = {}
        self.has_groups = True
        self._groups: dict[tuple[str, str], PodGroupView] = {}
        self._gone = FIFOCache[tuple[str, str], None](MOST_REMEMBERED)

    def put_namespace(self, namespace: NamespaceView) -> None:
        self.namespaces[namespace.name] = namespace
        self._gone.pop((_NAMESPACE, namespace.name), None)

    def remove_namespace(self, name: str) -> None:
        if self.namespaces.pop(name, None) is not None:
            self._gone[_NAMESPACE, name] = None

    def group(self, namespace: str, name: str) -> PodGroupView | None:
        return self._groups.get((namespace, name))

    def put_group(self, group: PodGroupView) -> None:
        self._groups[group.namespace, group.name] = group
        self._gone.pop((_GROUP, f"{group.namespace}/{group.name}"), None)

    def remove_group(self, namespace: str, name: str) -> None:
        if self._groups.pop((namespace, name), None) is not None:
            self._gone[_GROUP, f"{namespace}/{name}"] = None

    def missing(self, pod: PodView, queue: QueueName = NO_QUEUE) -> Missing | None:
        """What a verdict on the pod needs and is not there; None where all of it is.

        Args:
            pod: The pod.
            queue: Its queue, where that is known from elsewhere.
        """
        return next(self._missing(pod, queue or pod.queue), None)

    def _missing(self, pod: PodView, queue: QueueName) -> Iterator[Missing]:
        if pod.namespace not in self.namespaces:
            yield self._not_there(_NAMESPACE, pod.namespace)
        if not queue and self._lacks_group(pod):
            yield self._not_there(_GROUP, f"{pod.namespace}/{pod.group}")

    def _not_there(self, kind: str, name: str) -> Missing:
        return Missing(kind, name, gone=(kind, name) in self._gone)

    def _lacks_group(self, pod: PodView) -> bool:
        named = bool(pod.group) and self.has_groups
        return named and (pod.namespace, pod.group) not in self._groups

    def awaits(self, pod: PodView) -> bool:
        """Whether the pod's queue, or who may use it, is not known yet."""
        missing = self.missing(pod)
        return missing is not None and not missing.gone

    def knows_queue_of(self, pod: PodView) -> bool:
        """Whether all is there that says the pod's queue, "none" included.

        It does not matter whether the rest is gone or to come, which a restart would not know.
        """
        return bool(self.queue_of(pod)) or self.missing(pod) is None

    def queue_of(self, pod: PodView) -> QueueName:
        """The queue of a pod, whether it exists or not; "" for none, and where it is not known.

        The annotation of its binding, else its label, else its PodGroup's queue, else its
        namespace's label, else the default queue.
        """
        if pod.queue:
            return pod.queue
        group = self._groups.get((pod.namespace, pod.group)) if pod.group else None
        if group is not None and group.queue:
            return group.queue
        namespace = self.namespaces.get(pod.namespace)
        if namespace is None or self._lacks_group(pod):
            return NO_QUEUE
        label = namespace.labels.get(self._settings.queue_label, "")
        return QueueName(label) or self._settings.default_queue
