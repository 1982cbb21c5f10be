"""Reviews as the API server sends them, and a cluster to judge them by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.calls.api import ApiError
from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.objects.api import (
    Catalog,
    ClaimTemplateView,
    ClaimView,
    ClassView,
    InstanceView,
    NamespaceView,
    ResourceKey,
    claim_template_view,
)
from scheduler_plugin.objects.names import AccountingSettings, Queue, QueueName
from tests.scheduler_plugin.builders import a_queue, a_request, our_class
from webhook.lookups import BusyError
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


@dataclass
class FakeCluster:
    """A cluster in memory, for reviews; `lost` is what every read raises."""

    rule_context: RuleContext = field(default_factory=lambda: rule_context(a_queue("vision")))
    unseen: dict[str, Queue] = field(default_factory=dict)
    claims: dict[str, ClaimView] = field(default_factory=dict)
    templates: dict[str, ClaimTemplateView] = field(default_factory=dict)
    owned: tuple[ClaimView, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    handlers: Mapping[str, str] = field(default_factory=dict)
    not_ready: str = ""
    lost: ApiError | TimeoutError | RuntimeError | BusyError | None = None

    def why_not_ready(self) -> str:
        return self.not_ready

    def reported_handlers(self, namespace: str, name: str) -> Mapping[str, str]:
        return self.handlers

    async def look_for_queue(self, name: QueueName, namespace: str = "") -> None:
        self._read()
        if name in self.unseen:
            self.rule_context.tree.put(self.unseen[name])

    async def all_queues(self) -> None:
        self._read()
        for queue in self.unseen.values():
            self.rule_context.tree.put(queue)

    async def namespace(self, name: str) -> NamespaceView:
        self._read()
        return NamespaceView(name, self.labels)

    async def claim(self, namespace: str, name: str) -> ClaimView | None:
        self._read()
        return self.claims.get(name)

    async def template(self, namespace: str, name: str) -> ClaimTemplateView | None:
        self._read()
        return self.templates.get(name)

    async def claims_of(self, queue: QueueName) -> tuple[ClaimView, ...]:
        self._read()
        return self.owned

    def _read(self) -> None:
        if self.lost is not None:
            raise self.lost
