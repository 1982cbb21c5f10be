"""Enters pods and nodes: pods that matter into the world, all bound pods into Nodes.

Pod that matters, bound or not ──► World          Node ──► Nodes
Pod that is bound ───────────────► Nodes
"""

from __future__ import annotations

from dataclasses import dataclass

from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.nodes import NodeView
from scheduler_plugin.objects.pod_needs import PodOnNode
from scheduler_plugin.objects.projections import StoredPod, project_pod, project_stored_pod
from scheduler_plugin.reclaiming.placement.nodes import Nodes
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.published_slices import PublishedSlice


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that follow the stores; methods return False if listeners need not hear.

    Attributes:
        nodes: None if neither nodes nor other pods on them are kept.
    """

    world: World
    nodes: Nodes | None
    devices: OfferedDevices

    def project_pod(self, obj: JsonObject | Pod) -> StoredPod | None:
        """The stored part of a pod."""
        if self.nodes is None:
            return project_pod(obj, self.world.facts.settings)
        return project_stored_pod(obj, self.world.facts.settings)

    def put_pod(self, pod: StoredPod) -> bool:
        """Enter a pod; False for a pod without accounted devices that the world did not have."""
        self._put_on_node(pod)
        if isinstance(pod, PodOnNode):
            return self._forget(pod.uid)
        self.world.put_pod(pod)
        return True

    def _put_on_node(self, pod: StoredPod) -> None:
        if self.nodes is None:
            return
        on_node = pod if isinstance(pod, PodOnNode) else pod.on_node
        if on_node is not None:
            self.nodes.put_pod(on_node)
        else:
            self.nodes.delete_pod(pod.uid)

    def delete_pod(self, pod: StoredPod) -> bool:
        """Remove a pod; False for a pod that the world did not have."""
        if self.nodes is not None:
            self.nodes.delete_pod(pod.uid)
        return self._forget(pod.uid)

    def _forget(self, uid: PodUid) -> bool:
        if self.world.facts.pod(uid) is None:
            return False
        self.world.delete_pod(uid)
        return True

    def put_slice(self, found: PublishedSlice) -> bool:
        """Enter a slice; returns whether charges of queues may change."""
        self.devices.put_slice(found)
        return self.world.put_slice(found.view)

    def delete_slice(self, found: PublishedSlice) -> bool:
        """Remove a slice; returns whether charges of queues may change."""
        self.devices.delete_slice(found.name)
        return self.world.delete_slice(found.name)

    def put_rule(self, rule: DeviceTaintRule) -> None:
        """Enter a DeviceTaintRule."""
        self.devices.put_rule(rule)
        self.world.put_taint_rule(rule)

    def delete_rule(self, rule: DeviceTaintRule) -> None:
        """Remove a DeviceTaintRule."""
        self.devices.delete_rule(rule.name)
        self.world.delete_taint_rule(rule)

    def put_node(self, node: NodeView) -> bool:
        """Enter a node; listeners do not hear of it, since decisions read the nodes when made."""
        if self.nodes is not None:
            self.nodes.put_node(node)
        return False

    def delete_node(self, node: NodeView) -> bool:
        """Remove a node."""
        if self.nodes is not None:
            self.nodes.delete_node(node.name)
        return False
