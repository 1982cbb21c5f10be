"""Slots that a node does not give away, since a DeviceTaintRule of an administrator taints them.

    DeviceTaintRules, InstanceSlots ──with_withheld──► InstanceSlots

A pod cannot tolerate a device's taint through the device plugin, so rules with either effect
withhold the slots. Pods that hold one keep it, also with NoExecute: Kubernetes evicts users of
claims only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from driver.api import InstanceName, NodeName
from driver.instances.slots.slots import InstanceSlots
from driver.shapes.instance_taints import TaintRuleIndex, instance_pools


def with_withheld(
    views: Mapping[InstanceName, InstanceSlots], rules: TaintRuleIndex, node: NodeName
) -> Mapping[InstanceName, InstanceSlots]:
    """The Instances with the slots that the rules taint on this node."""
    if not rules:
        return views
    return {name: _with_withheld(view, rules, node) for name, view in views.items()}


def _with_withheld(view: InstanceSlots, rules: TaintRuleIndex, node: NodeName) -> InstanceSlots:
    pools = instance_pools(view.configuration, (node,), is_shared=view.shared)
    withheld: dict[int, str] = {}
    for rule, slots in rules.tainting(view.name, pools, view.capacity):
        for slot in slots:
            withheld.setdefault(slot, str(rule))
    return replace(view, withheld=withheld) if withheld else view
