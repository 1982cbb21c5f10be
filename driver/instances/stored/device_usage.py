"""Values of an Instance's `deviceUsage`: the holders of its slots.

    ""  or an absent key    the slot is free
    <node>                  the node holds it, through the resource of the Instance
    C:<device>:<node>       the node holds it, through the resource of the Configuration, under the
                            id <device> of the kubelet

Values of a running Akri are read, too. Akri's <device> is "0" or "<configuration>-0"; Moorage's is
"<instance>" or "<instance>-0". Names of nodes and devices have no colon, so a value is unambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from driver.api import NodeName
from kube.shapes.names import is_name


@dataclass(frozen=True, slots=True)
class ByInstance:
    """A node that holds the slot through the Instance, `akri.sh/<configuration>-<hash>`."""

    node: NodeName


@dataclass(frozen=True, slots=True)
class ByConfiguration:
    """A node that holds the slot through the Configuration, `akri.sh/<configuration>`.

    Attributes:
        device: The kubelet's id of the device.
    """

    device: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class UnknownHolder:
    """A value that names no holder. Such a slot is never given away."""

    value: str


Holder = ByInstance | ByConfiguration | UnknownHolder


def parse_holder(value: object) -> Holder | None:
    """The holder that a value of `deviceUsage` names; None if the slot is free."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        return UnknownHolder(str(value))
    match value.split(":"):
        case [node] if is_name(node):
            return ByInstance(NodeName(node))
        case ["C", device, node] if device and is_name(node):
            return ByConfiguration(device, NodeName(node))
    return UnknownHolder(value)


def holder_value(holder: Holder | None) -> str:
    """The value of `deviceUsage` that names this holder; `parse_holder` undoes it."""
    match holder:
        case None:
            return ""
        case ByInstance(node):
            return node
        case ByConfiguration(device, node):
            return f"C:{device}:{node}"
        case UnknownHolder(value):
            return value
        case _:
            assert_never(holder)


def is_held_by(holder: Holder | None, node: NodeName) -> bool:
    """Whether this node holds the slot, through either resource."""
    return isinstance(holder, ByInstance | ByConfiguration) and holder.node == node
