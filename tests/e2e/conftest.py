"""Stories on the real Kubernetes of deploy/local; its fixtures come from `local_cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

UNCLOSED = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""Python 3.11 does not close a connection whose maker is cancelled just before TLS begins. That
happens where servers are killed, and the collector closes it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the cluster, so nobody has to say so in each file."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(UNCLOSED)
