"""The API server: which kinds of objects are followed."""

from __future__ import annotations

from driver.api import AKRI_GROUP, AKRI_VERSION
from kube.api import Resource
from scheduler_plugin.objects.names import GROUP, VERSION

DRA_GROUP = "resource.k8s.io"

PODS = Resource("", "v1", "pods")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
CLAIMS = Resource(DRA_GROUP, "v1", "resourceclaims")
CLASSES = Resource(DRA_GROUP, "v1", "deviceclasses", namespaced=False)
SLICES = Resource(DRA_GROUP, "v1", "resourceslices", namespaced=False)
QUEUES = Resource(GROUP, VERSION, "queues", namespaced=False)
CONFIGURATIONS = Resource(AKRI_GROUP, AKRI_VERSION, "configurations")
INSTANCES = Resource(AKRI_GROUP, AKRI_VERSION, "instances")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
