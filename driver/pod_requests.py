"""What a pod asks for in all, as Kubernetes adds up what its containers ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


def effective_requests(
    init_containers: Iterable[tuple[Mapping[str, int], bool]],
    containers: Iterable[Mapping[str, int]],
) -> dict[str, int]:
    """Kubernetes' effective request (KEP-753), without pod-level resources and overhead.

    Containers and sidecars run together; any other init container runs beside the sidecars that
    were started before it. The kubelet follows that: devices of an init container are given on to
    later containers, and what of them is left over stays the pod's.

    Args:
        init_containers: What each asks for, and whether it is a sidecar.
        containers: What each asks for.
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
