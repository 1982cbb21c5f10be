"""The API server: which kinds of objects are followed."""

from __future__ import annotations

from driver.api import AKRI_GROUP, AKRI_VERSION
from kube.api import Resource
from scheduler_plugin.objects.names import GROUP, VERSION

QUEUES = Resource(GROUP, VERSION, "queues", namespaced=False)
CONFIGURATIONS = Resource(AKRI_GROUP, AKRI_VERSION, "configurations")
INSTANCES = Resource(AKRI_GROUP, AKRI_VERSION, "instances")
