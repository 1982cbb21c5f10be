"""Kubernetes' own kinds that somebody here reads or writes."""

from __future__ import annotations

from kube.resources import Resource

_DRA = "resource.k8s.io"

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets")
CLAIMS = Resource(_DRA, "v1", "resourceclaims")
CLASSES = Resource(_DRA, "v1", "deviceclasses", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
NODES = Resource("", "v1", "nodes", namespaced=False)
PODS = Resource("", "v1", "pods")
SECRETS = Resource("", "v1", "secrets")
SLICES = Resource(_DRA, "v1", "resourceslices", namespaced=False)
TEMPLATES = Resource(_DRA, "v1", "resourceclaimtemplates")
