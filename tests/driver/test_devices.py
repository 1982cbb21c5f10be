"""The hash of a device is Akri's."""

from __future__ import annotations

import pytest

from driver.api import NodeName
from driver.devices import device_hash


@pytest.mark.parametrize(
    ("device_id", "node", "expected"),
    [
        ("my_local_device", "my_node", "e77db4"),
        ("my_local_device", "my_other_node", "099763"),
        ("my_shared_device", None, "4294ea"),
        ("foo0", None, "8120fe"),
        ("foo1", None, "a19705"),
        ("bar0", None, "d46b65"),
    ],
)
def test_vectors_of_akri(device_id: str, node: str | None, expected: str) -> None:
    assert device_hash(device_id, NodeName(node) if node else None) == expected
