"""One snapshot of the API server: all kinds that the rules need, listed page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kube.kinds import (
    CLAIMS,
    CLASSES,
    CONFIGURATIONS,
    INSTANCES,
    NAMESPACES,
    PODS,
    QUEUES,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Resource,
)
from kube.kubectl_client import ApiReader, ForbiddenError, GoneError, JsonObject, NotFoundError
from kube.shapes.pods import NO_SPEC, Pod
from kube.shapes.reading import UnreadableError, read_as
from kube.shapes.times import timestamp
from scheduler_plugin.asking.shapes import needs_looks
from scheduler_plugin.asking.snapshots import Snapshot, kept
from scheduler_plugin.asking.view_errors import NotThereError
from scheduler_plugin.objects.names import AccountingSettings
from scheduler_plugin.objects.projections import project_pod

NEEDED = (QUEUES, PODS, NAMESPACES)
OPTIONAL = (CLAIMS, CLASSES, SLICES, CONFIGURATIONS, INSTANCES)
"""Kinds that a cluster may not serve; a kind that it serves must be readable."""

PRIORITIES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
BESIDE = (TEMPLATES, PRIORITIES)
"""Kinds that few views need; a kind that may not be read is noted, and the rest is printed."""

DRIVER_LABELS = {"app.kubernetes.io/name": "moorage-driver", "app.kubernetes.io/component": "node"}
ATTEMPTS = 3

Progress = Callable[[str, int], None]
"""Called with the kind that is being read, and the number of its objects so far."""


class NoQueuesError(NotThereError):
    """Raised if the cluster serves no Queues: Moorage is not installed."""


@dataclass(slots=True)
class SnapshotReader:
    """Reads one snapshot.

    Attributes:
        progress: Called with the progress.
        with_looks: Whether to keep what selectors read, though no Queue needs it yet.
    """

    client: ApiReader
    settings: AccountingSettings
    pod_groups: Sequence[Resource]
    progress: Progress
    with_looks: bool = False
    _notes: list[str] = field(default_factory=list)
    _driver_nodes: set[str] = field(default_factory=set)

    async def read(self, now: datetime) -> Snapshot:
        """Read all kinds.

        Raises:
            ApiError: If a needed kind cannot be read; it names verb and resource.
            NoQueuesError: If Moorage is not installed.
        """
        objects: dict[str, tuple[JsonObject, ...]] = {}
        for resource in (*NEEDED, *OPTIONAL):
            found = await self._listed(resource)
            if found is None and resource is QUEUES:
                raise NoQueuesError("this cluster has no Queues: Moorage is not installed.")
            objects[resource.plural] = found or ()
            self.with_looks = self.with_looks or needs_looks(objects[QUEUES.plural])
        for resource in BESIDE:
            objects[resource.plural] = await self._listed_if_allowed(resource) or ()
        objects["devicetaintrules"] = await self._taint_rules()
        groups = [await self._pod_groups(resource) for resource in self.pod_groups]
        objects["podgroups"] = tuple(group for found in groups for group in found or ())
        snapshot = Snapshot(
            taken_at=timestamp(now),
            settings=self.settings,
            objects=objects,
            serves_groups=any(found is not None for found in groups),
            driver_nodes=tuple(sorted(self._driver_nodes)),
            notes=tuple(self._notes),
            with_looks=self.with_looks,
        )
        if not self.with_looks:
            return snapshot
        # Few clusters need it, and it imports more than all the rest.
        from scheduler_plugin.asking.cel_processes import with_selected

        return with_selected(snapshot)

    async def _taint_rules(self) -> tuple[JsonObject, ...]:
        """The DeviceTaintRules of the first version that is served, or that may not be read."""
        for resource in TAINT_RULES:
            if (found := await self._listed_if_allowed(resource)) is not None:
                return found
        return ()

    async def _pod_groups(self, resource: Resource) -> list[JsonObject] | None:
        """The PodGroups of one kind, each with its API version, which a list may leave out."""
        served = resource if resource.version else await self._in_served_version(resource)
        found = None if served is None else await self._listed_if_allowed(served)
        if served is None or found is None:
            return None
        return [{**group, "apiVersion": served.api_version} for group in found]

    async def _in_served_version(self, resource: Resource) -> Resource | None:
        try:
            return await self.client.in_served_version(resource)
        except ForbiddenError as error:
            self._notes.append(f"{resource.plural} of {resource.group} were not read: {error}.")
            return None

    async def _listed_if_allowed(self, resource: Resource) -> tuple[JsonObject, ...] | None:
        """The objects; None if the kind is not served, () with a note if it may not be read.

        The right to list a kind is checked before its absence, so the note names the right.
        """
        try:
            return await self._listed(resource)
        except ForbiddenError as error:
            self._notes.append(f"{resource.plural} of {resource.group} were not read: {error}.")
            return ()

    async def _listed(self, resource: Resource) -> tuple[JsonObject, ...] | None:
        for attempt in range(ATTEMPTS):
            try:
                return await self._pages(resource)
            except NotFoundError:
                return None
            except GoneError:  # The list took too long: its continue token has expired.
                if attempt + 1 == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returned or raised")

    async def _pages(self, resource: Resource) -> tuple[JsonObject, ...]:
        found: list[JsonObject] = []
        self.progress(resource.plural, 0)
        async for page in self.client.pages(resource.select()):
            objects = self._matter(page.items) if resource is PODS else page.items
            found += kept(
                resource.plural,
                objects,
                self.settings.queue_label,
                with_looks=self.with_looks,
            )
            self.progress(resource.plural, len(found))
        return tuple(found)

    def _matter(self, pods: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """The pods that matter; beside that, note the nodes of the driver's pods.

        Most pods of a cluster have nothing to do with devices.
        """
        for obj in pods:
            try:
                pod = read_as(Pod, obj)
                matters = project_pod(pod, self.settings) is not None
            except UnreadableError:
                continue
            node, labels = (pod.spec or NO_SPEC).node_name, pod.metadata.labels or {}
            if node and DRIVER_LABELS.items() <= labels.items():
                self._driver_nodes.add(node)
            if matters:
                yield obj
