"""The DeviceTaintRules that select an Instance, by the names that its devices have in slices.

A rule names pools and devices, and an Instance has the same names whether its devices are offered
through DRA or through the device plugin:

    pool    shared/<configuration>; or <node> and local/<node>/<configuration>
    device  <instance>, for all of its slots; <instance>-<slot> for one of them

A Configuration whose name is no DNS label has other device names. Rules select its devices by pool,
and through the device plugin by the name of the Instance.
"""

from __future__ import annotations

from collections.abc import Iterable

from driver.api import DRIVER_NAME, LOCAL_POOLS, SHARED_POOLS
from kube.shapes.taint_rules import DeviceTaintRule

UNKNOWN_POOL = ("",)
"""The pools of a device that no node sees now: rules of any pool select it."""


def instance_pools(configuration: str, nodes: Iterable[str], *, is_shared: bool) -> tuple[str, ...]:
    """The pools in which devices of an Instance may be published.

    Args:
        configuration: Its Configuration.
        nodes: The nodes that see it.
        is_shared: Whether several nodes may see it.
    """
    if is_shared:
        return (f"{SHARED_POOLS}{configuration}",)
    pools = (pool for node in nodes for pool in (node, f"{LOCAL_POOLS}{node}/{configuration}"))
    return tuple(pools) or UNKNOWN_POOL


def tainted_slots(
    rule: DeviceTaintRule, instance: str, pools: Iterable[str], capacity: int
) -> range:
    """The slots of an Instance that a rule taints: all, one, or none."""
    if not any(rule.selects_pool(DRIVER_NAME, pool) for pool in pools):
        return range(0)
    if rule.device in (None, instance):
        return range(capacity)
    stem, _, index = (rule.device or "").rpartition("-")
    is_slot = stem == instance and index.isascii() and index.isdecimal() and len(index) <= 4
    return range(int(index), min(int(index) + 1, capacity)) if is_slot else range(0)
