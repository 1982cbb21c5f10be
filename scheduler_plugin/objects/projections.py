"""The projections of objects that the stores keep.

Subscribers of a store are not called for a new version whose projection is equal.
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
    """A claim with its version, which the preconditions of writes need."""

    view: ClaimView
    resource_version: str


def project_claim(obj: JsonObject | Claim, *, queue_label: str) -> ClaimVersion:
    view = claim_view(obj, queue_label=queue_label)
    return ClaimVersion(view, view.resource_version)


StoredPod: TypeAlias = PodView | PodOnNode
"""A relevant pod; or the resources that another pod takes of its node."""


def project_pod(obj: JsonObject | Pod, settings: AccountingSettings) -> PodView | None:
    """A relevant pod; None for any other, as for most pods of a cluster."""
    view = pod_view(obj, settings)
    return view if is_relevant(view, settings) else None


def project_stored_pod(obj: JsonObject | Pod, settings: AccountingSettings) -> StoredPod | None:
    """A relevant pod, or what another pod takes of its node; None if it takes nothing."""
    view = pod_view(obj, settings)
    return view if is_relevant(view, settings) else view.on_node


def is_relevant(pod: PodView, settings: AccountingSettings) -> bool:
    """Whether a pod is relevant: it may use devices, waits at the gate, or is scheduled here.

    Pending pods of the plugin's scheduler are kept, so that Bind needs neither the pod of the last
    Filter nor a read from the API server. So are pods of a PodGroup, since its other pods depend on
    them.
    """
    is_ours = pod.scheduler in settings.scheduler_names
    counts = pod.may_be_bound or (bool(pod.group) and not pod.ended)
    return pod.may_use_devices or pod.is_gated or (is_ours and counts)


def project_configuration(obj: JsonObject) -> ResourceKey:
    return ResourceKey(named_metadata(obj).name)
