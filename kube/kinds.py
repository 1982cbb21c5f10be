"""Kinds of objects that Moorage reads or writes: Kubernetes' own, Akri's and Moorage's."""

from __future__ import annotations

from kube.resources import Resource as Resource

_ADMISSION = ("admissionregistration.k8s.io", "v1")
_AKRI = ("akri.sh", "v0")
_DRA = ("resource.k8s.io", "v1")

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets")
CLAIMS = Resource(*_DRA, "resourceclaims")
CLASSES = Resource(*_DRA, "deviceclasses", namespaced=False)
CONFIGURATIONS = Resource(*_AKRI, "configurations")
CONFIG_MAPS = Resource("", "v1", "configmaps")
DAEMON_SETS = Resource("apps", "v1", "daemonsets")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments")
EVENTS = Resource("events.k8s.io", "v1", "events")
INSTANCES = Resource(*_AKRI, "instances")
JOBS = Resource("batch", "v1", "jobs")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
MUTATING_WEBHOOKS = Resource(*_ADMISSION, "mutatingwebhookconfigurations", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
NODES = Resource("", "v1", "nodes", namespaced=False)
PODS = Resource("", "v1", "pods")
QUEUES = Resource("moorage.dev", "v1alpha1", "queues", namespaced=False)
SECRETS = Resource("", "v1", "secrets")
SERVICES = Resource("", "v1", "services")
SLICES = Resource(*_DRA, "resourceslices", namespaced=False)
TAINT_RULES = tuple(
    Resource("resource.k8s.io", version, "devicetaintrules", namespaced=False)
    for version in ("v1", "v1beta2")
)
"""DeviceTaintRules: of Kubernetes 1.37, and of 1.36 where an administrator turned them on."""

TEMPLATES = Resource(*_DRA, "resourceclaimtemplates")
VALIDATING_WEBHOOKS = Resource(*_ADMISSION, "validatingwebhookconfigurations", namespaced=False)
