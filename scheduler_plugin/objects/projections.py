"""What the stores keep of each object.

Two versions of an object whose projections are equal are one to everybody who hears of changes.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kube.shapes.claims import Claim
from kube.shapes.metadata import named_metadata
from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import AccountingSettings
from scheduler_plugin.objects.pod_needs import PodOnNode
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView


class ClaimVersion(NamedTuple):
    """A claim in one of its versions: a write's precondition needs the newest."""

    view: ClaimView
    resource_version: str


def project_claim(obj: JsonObject | Claim, *, queue_label: str) -> ClaimVersion:
    view = claim_view(obj, queue_label=queue_label)
    return ClaimVersion(view, view.resource_version)


StoredPod: TypeAlias = PodView | PodOnNode
"""A pod that matters here; or a bystander, of which only what it takes of its node is kept."""


def project_pod(obj: JsonObject | Pod, settings: AccountingSettings) -> PodView | None:
    """A pod that matters here; None for any other: most of a cluster."""
    view = pod_view(obj, settings)
    return view if is_kept(view, settings) else None


def project_stored_pod(obj: JsonObject | Pod, settings: AccountingSettings) -> StoredPod | None:
    """The same, and bystanders; None for a pod that neither matters here nor takes of a node."""
    view = pod_view(obj, settings)
    return view if is_kept(view, settings) else view.on_node


def is_kept(pod: PodView, settings: AccountingSettings) -> bool:
    """Whether a pod may use devices, waits at our gate, is still to be bound by us, or of a group.

    Those to be bound, so that Bind need not believe what Filter was told, nor ask the API server;
    those of a PodGroup, since others go only with them.
    """
    is_ours = pod.scheduler in settings.scheduler_names
    counts = pod.may_be_bound or (bool(pod.group) and not pod.ended)
    return pod.may_use_devices or pod.is_gated or (is_ours and counts)


def project_configuration(obj: JsonObject) -> ResourceKey:
    return ResourceKey(named_metadata(obj).name)
