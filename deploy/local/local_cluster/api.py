"""The door for tests and benchmarks: a cluster, its settings, and what is done with it."""

from __future__ import annotations

from local_cluster.cluster import Certificate, Cluster
from local_cluster.component_handles import ComponentHandle
from local_cluster.components import Component, HttpReady, Mode, SocketReady, Workload
from local_cluster.configurations import BUSYBOX_IMAGE, BUSYBOX_OF_PAGES
from local_cluster.errors import (
    ApiError,
    ConditionTimeoutError,
    LocalClusterError,
    PartError,
    SettingsError,
)
from local_cluster.handles import Node, Part
from local_cluster.kubectl import KubectlError
from local_cluster.settings import CONTROL_PLANE, ClusterSettings, Profile

__all__ = [
    "BUSYBOX_IMAGE",
    "BUSYBOX_OF_PAGES",
    "CONTROL_PLANE",
    "ApiError",
    "Certificate",
    "Cluster",
    "ClusterSettings",
    "Component",
    "ComponentHandle",
    "ConditionTimeoutError",
    "HttpReady",
    "KubectlError",
    "LocalClusterError",
    "Mode",
    "Node",
    "Part",
    "PartError",
    "Profile",
    "SettingsError",
    "SocketReady",
    "Workload",
]
