"""The tables of the document on Configuration-level resources, as test vectors.

Two nodes see two cameras, capacity 2. `H` is Healthy and `U` is Unhealthy, one letter for each row;
rows are named by their line in the document. Where the document writes `node-a` for slots that are
held through the Configuration, the errata say what the value really is; that is what is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.api import NodeName
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    by_configuration,
)

NONE: Mapping[str, str] = {}
CL_TRUE = {
    f"{CAMERA_1}-0": by_configuration(CAMERA_1),
    f"{CAMERA_2}-1": by_configuration(CAMERA_2),
}
CL_FALSE = {
    f"{CAMERA_1}-0": by_configuration(f"{CAMERA_1}-0"),
    f"{CAMERA_1}-1": by_configuration(f"{CAMERA_1}-1"),
}
IL = {f"{CAMERA_1}-0": NODE_A, f"{CAMERA_2}-1": NODE_A}
IL_ON_B = {f"{CAMERA_2}-0": NODE_B}

USAGE: Mapping[str, Mapping[str, str]] = {
    "true, initial": NONE,
    "true, CL on a": CL_TRUE,
    "true, CL on a, IL on b": {**CL_TRUE, **IL_ON_B},
    "true, initial (again)": NONE,
    "true, IL on a": IL,
    "false, initial": NONE,
    "false, CL on a": CL_FALSE,
    "V1: false, IL on a": IL,
    "V2: false, CL on a, IL on b": {**CL_FALSE, **IL_ON_B},
}


def is_unique(state: str) -> bool:
    """The policy of a state."""
    return "true" in state


@dataclass(frozen=True)
class Block:
    """Rows that one device plugin lists on one node.

    Attributes:
        plugin: The resource's name after `akri.sh/`.
        line: Of the first row.
        health: One letter for each row.
    """

    state: str
    node: NodeName
    plugin: str
    line: int
    health: str


BLOCKS = (
    Block("true, initial", NODE_A, CONFIGURATION, 123, "HH"),
    Block("true, initial", NODE_A, CAMERA_1, 127, "HH"),
    Block("true, initial", NODE_A, CAMERA_2, 131, "HH"),
    Block("true, initial", NODE_B, CONFIGURATION, 138, "HH"),
    Block("true, initial", NODE_B, CAMERA_1, 142, "HH"),
    Block("true, initial", NODE_B, CAMERA_2, 146, "HH"),
    Block("true, CL on a", NODE_A, CONFIGURATION, 173, "HH"),
    Block("true, CL on a", NODE_A, CAMERA_1, 177, "UH"),
    Block("true, CL on a", NODE_A, CAMERA_2, 181, "HU"),
    Block("true, CL on a", NODE_B, CONFIGURATION, 188, "HH"),
    Block("true, CL on a", NODE_B, CAMERA_1, 192, "UH"),
    Block("true, CL on a", NODE_B, CAMERA_2, 196, "HU"),
    Block("true, CL on a, IL on b", NODE_A, CONFIGURATION, 221, "HH"),
    Block("true, CL on a, IL on b", NODE_A, CAMERA_1, 225, "UH"),
    Block("true, CL on a, IL on b", NODE_A, CAMERA_2, 229, "UU"),
    Block("true, CL on a, IL on b", NODE_B, CONFIGURATION, 236, "HU"),
    Block("true, CL on a, IL on b", NODE_B, CAMERA_1, 240, "UH"),
    Block("true, CL on a, IL on b", NODE_B, CAMERA_2, 244, "HU"),
    Block("true, initial (again)", NODE_A, CONFIGURATION, 270, "HH"),
    Block("true, initial (again)", NODE_A, CAMERA_1, 274, "HH"),
    Block("true, initial (again)", NODE_A, CAMERA_2, 278, "HH"),
    Block("true, initial (again)", NODE_B, CONFIGURATION, 285, "HH"),
    Block("true, initial (again)", NODE_B, CAMERA_1, 289, "HH"),
    Block("true, initial (again)", NODE_B, CAMERA_2, 293, "HH"),
    Block("true, IL on a", NODE_A, CONFIGURATION, 319, "HH"),
    Block("true, IL on a", NODE_A, CAMERA_1, 323, "HH"),
    Block("true, IL on a", NODE_A, CAMERA_2, 327, "HH"),
    Block("true, IL on a", NODE_B, CONFIGURATION, 334, "HH"),
    Block("true, IL on a", NODE_B, CAMERA_1, 338, "UH"),
    Block("true, IL on a", NODE_B, CAMERA_2, 342, "HU"),
    Block("false, initial", NODE_A, CONFIGURATION, 370, "HHHH"),
    Block("false, initial", NODE_A, CAMERA_1, 376, "HH"),
    Block("false, initial", NODE_A, CAMERA_2, 380, "HH"),
    Block("false, initial", NODE_B, CONFIGURATION, 387, "HHHH"),
    Block("false, initial", NODE_B, CAMERA_1, 393, "HH"),
    Block("false, initial", NODE_B, CAMERA_2, 397, "HH"),
    Block("false, CL on a", NODE_A, CONFIGURATION, 422, "HHHH"),
    Block("false, CL on a", NODE_A, CAMERA_1, 428, "UU"),
    Block("false, CL on a", NODE_A, CAMERA_2, 432, "HH"),
    Block("false, CL on a", NODE_B, CONFIGURATION, 439, "UUHH"),
    Block("false, CL on a", NODE_B, CAMERA_1, 445, "UU"),
    Block("false, CL on a", NODE_B, CAMERA_2, 449, "HH"),
)

ALLOCATABLE = {
    "true, initial": ((2, 2, 2), (2, 2, 2)),
    "true, CL on a": ((2, 1, 1), (2, 1, 1)),
    "true, CL on a, IL on b": ((2, 1, 0), (1, 1, 1)),
    "true, initial (again)": ((2, 2, 2), (2, 2, 2)),
    "true, IL on a": ((2, 2, 2), (2, 1, 1)),
    "false, initial": ((4, 2, 2), (4, 2, 2)),
    "false, CL on a": ((4, 0, 2), (2, 0, 2)),
    "V1: false, IL on a": ((2, 2, 2), (2, 1, 1)),
    "V2: false, CL on a, IL on b": ((3, 0, 1), (1, 0, 2)),
}
"""Allocatable of the Configuration and of both cameras on node-a, and on node-b: the errata."""
