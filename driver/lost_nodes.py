"""Slots of nodes that are gone: released by the shared driver, since the node itself cannot.

The node's own driver can continue from there. If the node comes back with its containers running,
slot reconciliation takes their slots back, or says in an Event who has them now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from driver.api import NodeName
from driver.device_usage import Holder, UnknownHolder
from driver.slots import InstanceSlots, SlotWrite, slot_write


def plan_lost_nodes(
    instances: Iterable[InstanceSlots],
    lost_since: Mapping[NodeName, datetime],
    *,
    grace: timedelta,
    now: datetime,
) -> tuple[SlotWrite, ...]:
    """Release what lost nodes hold, one write per Instance and node, in that node's name.

    Several writes of one Instance carry the same version: after the first the others conflict and
    are decided again.

    Args:
        instances: All that exist.
        lost_since: Nodes that are not Ready, and names that slots give to nodes that do not exist,
            each with the time since which it is so, as far as is known.
        grace: How long a node may be away and keep its slots.
        now: The present.
    """
    lost = {node for node, since in lost_since.items() if now - since >= grace}
    return tuple(
        slot_write(slots, node, dict.fromkeys(slots.held_by(node), None))
        for slots in instances
        for node in sorted(holding_nodes(slots) & lost)
    )


def holding_nodes(slots: InstanceSlots) -> frozenset[NodeName]:
    """The nodes that hold slots of an Instance."""
    return frozenset(filter(None, map(_node, slots.holders.values())))


def _node(holder: Holder) -> NodeName | None:
    return None if isinstance(holder, UnknownHolder) else holder.node
