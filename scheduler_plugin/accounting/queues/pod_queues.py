"""Which queue a pod has, as far as that is known.

The pod's namespace, or the PodGroup that it names, may not be known yet. Then no other source is
used for the pod's queue, and the pod is not judged. A deleted object is distinguished from an
unknown one, since no pod needs to wait for it. An object that this process has forgotten, or never
knew, counts as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachetools import FIFOCache

from scheduler_plugin.objects.names import NO_QUEUE, AccountingSettings, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView

MOST_REMEMBERED = 10_000
"""How many deleted namespaces and PodGroups are remembered: more than pending pods depend on."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing object that decides a pod's queue.

    Attributes:
        gone: Whether it was deleted; otherwise it is not created, or not known yet.
    """

    kind: str
    name: str
    gone: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


_NAMESPACE, _GROUP = "Namespace", "PodGroup"


class PodQueues:
    """Namespaces and PodGroups, and the queues of pods that follow from them.

    Attributes:
        namespaces: The namespaces by name.
        has_groups: Whether the cluster serves a kind of PodGroups; otherwise the reference of a pod
            to a PodGroup is ignored.
    """

    def __init__(self, settings: AccountingSettings) -> None:
        self._settings = settings
        self.namespaces: dict[str, NamespaceView] = {}
        self.has_groups = True
        self._groups: dict[tuple[str, str], PodGroupView] = {}
        # Those of Kubernetes' own API: a PodGroup of another API may have the same name.
        self._own_groups: dict[tuple[str, str], PodGroupView] = {}
        self._gone = FIFOCache[tuple[str, str], None](MOST_REMEMBERED)

    def put_namespace(self, namespace: NamespaceView) -> None:
        self.namespaces[namespace.name] = namespace
        self._gone.pop((_NAMESPACE, namespace.name), None)

    def remove_namespace(self, name: str) -> None:
        if self.namespaces.pop(name, None) is not None:
            self._gone[_NAMESPACE, name] = None

    def group(self, namespace: str, name: str) -> PodGroupView | None:
        return self._groups.get((namespace, name))

    def own_group(self, namespace: str, name: str) -> PodGroupView | None:
        """The PodGroup of Kubernetes' own API, for which claims may be reserved."""
        return self._own_groups.get((namespace, name))

    def is_gone_group(self, namespace: str, name: str) -> bool:
        """Whether the PodGroup is known to be deleted."""
        return (_GROUP, f"{namespace}/{name}") in self._gone

    def put_group(self, group: PodGroupView) -> None:
        self._groups[group.namespace, group.name] = group
        if group.is_kubernetes_own:
            self._own_groups[group.namespace, group.name] = group
        self._gone.pop((_GROUP, f"{group.namespace}/{group.name}"), None)

    def remove_group(self, namespace: str, name: str) -> None:
        self._own_groups.pop((namespace, name), None)
        if self._groups.pop((namespace, name), None) is not None:
            self._gone[_GROUP, f"{namespace}/{name}"] = None

    def missing(self, pod: PodView, queue: QueueName = NO_QUEUE) -> Missing | None:
        """The first missing object that a verdict on the pod needs; None if there is none.

        Args:
            pod: The pod.
            queue: Its queue, if that is known from another source.
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
        """Whether the pod's queue, or the pod's right to use it, is not known yet."""
        missing = self.missing(pod)
        return missing is not None and not missing.gone

    def knows_queue_of(self, pod: PodView) -> bool:
        """Whether the pod's queue is known, "none" included.

        A deleted object and an unknown one count the same here, since a restart forgets the
        difference.
        """
        return bool(self.queue_of(pod)) or self.missing(pod) is None

    def queue_of(self, pod: PodView) -> QueueName:
        """The queue of a pod, whether it exists or not; "" for none, or while it is unknown.

        It is the annotation of the pod's binding, else the pod's label, else its PodGroup's queue,
        else its namespace's label, else the default queue.
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
