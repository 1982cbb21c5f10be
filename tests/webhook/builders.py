"""Reviews as the API server sends them, and a cluster to judge them by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.objects.api import (
    Catalog,
    ClaimTemplateView,
    ClassView,
    InstanceView,
    ResourceKey,
    claim_template_view,
)
from scheduler_plugin.objects.names import AccountingSettings, Queue
from tests.scheduler_plugin.builders import a_request, our_class
from webhook.reviews import AdmissionReview, Review
from webhook.rules.rule_context import PodSettings, RuleContext

QUEUE_LABEL = "moorage.dev/queue"
LABEL_PATH = f"metadata.labels[{QUEUE_LABEL}]"
DEFAULTS = PodSettings()

GROUPS: Mapping[str, tuple[str, str]] = {
    "Configuration": ("akri.sh", "v0"),
    "DeviceClass": ("resource.k8s.io", "v1"),
    "Pod": ("", "v1"),
    "Queue": ("moorage.dev", "v1alpha1"),
    "ResourceClaim": ("resource.k8s.io", "v1"),
    "ResourceClaimTemplate": ("resource.k8s.io", "v1"),
}


def a_review_body(
    kind: str, new: Any = None, old: Any = None, *, operation: str = "", **request: Any
) -> bytes:
    """A review; the operation follows from which objects there are."""
    group, version = GROUPS.get(kind, ("apps", "v1"))
    follows = {(True, False): "CREATE", (True, True): "UPDATE", (False, True): "DELETE"}
    metadata = (new or old or {}).get("metadata", {})
    asked = {
        "uid": "uid-of-the-review",
        "kind": {"group": group, "version": version, "kind": kind},
        "operation": operation or follows.get((new is not None, old is not None), "CREATE"),
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        **request,
    }
    envelope = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    return json.dumps(envelope).encode()


def a_review(kind: str, new: Any = None, old: Any = None, **request: Any) -> Review:
    body = a_review_body(kind, new, old, **request)
    return AdmissionReview.model_validate_json(body).request


def a_template_object(name: str = "cams", *, queue: str | None = None) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {QUEUE_LABEL: queue}}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-of-{name}"},
        "spec": {"metadata": labels, "spec": {"devices": {"requests": [a_request()]}}},
    }


def a_template(name: str = "cams") -> ClaimTemplateView:
    return claim_template_view(a_template_object(name), queue_label=QUEUE_LABEL)


def rule_context(
    *objects: object, queue_label: str = QUEUE_LABEL, pods: PodSettings = DEFAULTS
) -> RuleContext:
    """What is known: these objects, and the class `onvif` of Moorage's."""
    tree = QueueTree()
    catalog = Catalog(tree.lists)
    catalog.put_class(our_class())
    known = {"onvif"}
    for found in objects:
        match found:
            case Queue():
                tree.put(found)
            case ClassView():
                catalog.put_class(found)
                known.add(found.name)
            case InstanceView():
                catalog.put_instance(found)
            case str():
                catalog.put_configuration(ResourceKey(found))
                known.add(found)
            case _:
                raise AssertionError(found)
    return RuleContext(
        tree=tree,
        catalog=catalog,
        exists=known.__contains__,
        settings=AccountingSettings(queue_label=queue_label),
        pods=pods,
    )
