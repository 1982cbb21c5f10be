"""The effective resource request of a pod, computed from its containers as Kubernetes does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


def effective_requests(
    init_containers: Iterable[tuple[Mapping[str, int], bool]],
    containers: Iterable[Mapping[str, int]],
) -> dict[str, int]:
    """Kubernetes' effective request (KEP-753), without pod-level resources and overhead.

    Containers and sidecars run together; any other init container runs beside the sidecars that
    were started before it. The kubelet does the same: later containers reuse the devices of an init
    container, and the pod keeps the devices that are not reused.

    Args:
        init_containers: Request of each init container, and whether it is a sidecar.
        containers: Request of each container.
    """
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for wanted, is_sidecar in init_containers:
        if is_sidecar:
            running.update(wanted)
        else:
            most |= running + Counter(wanted)
    for wanted in containers:
        running.update(wanted)
    return dict(sorted((most | running).items()))
