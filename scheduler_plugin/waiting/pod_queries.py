"""The answer to a question about one waiting pod, by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import WaitingPod, WaitReason, waiting_pod
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods


def query_pod(
    named: tuple[str, str],
    world: WorldView,
    waiting: WaitingPods,
    as_it_waits: Callable[[PodUid], PodView | None],
) -> WaitingPod | str:
    """The state of a waiting pod now; a sentence where the pod does not wait.

    Args:
        named: Its namespace and name.
        world: The known objects.
        waiting: The waiting pods.
        as_it_waits: Returns a waiting pod as it is to be judged, and None for any other.
    """
    pod = world.facts.pod_named(*named)
    if pod is None:
        return f"Pod {'/'.join(named)} does not exist, or requests no devices."
    if (waits := as_it_waits(pod.uid)) is None:
        return f"{pod} does not wait: it has no gate {QUOTA_GATE}, and was not refused."
    pod_class, place = waiting.class_of(pod.uid), waiting.place(pod.uid)
    found = waiting_pod(
        waits, place, world, yields_to=pod_class.yields_to if pod_class is not None else ""
    )
    if pod_class is not None and pod_class.reason == WaitReason.NO_DEVICE_FREE and not found.reason:
        return replace(found, reason=pod_class.reason, message=pod_class.refusal)
    return found
