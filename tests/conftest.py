"""Settings for all tests."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["local_cluster.fixtures"]

# These machines are shared and noisy: how long a draw or an example takes says nothing here.
settings.register_profile(
    "moorage", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("moorage")


LONG = re.compile(
    r"histories|properties|crashes|hostile|networks|namespaces|selectors|kubelet_plugin|test_ways"
)
"""Names of tests that draw by chance, or start processes: two fifths of the time of all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, so that `make unit` leaves them to `make test`."""
    for item in items:
        if LONG.search(item.nodeid):
            item.add_marker(pytest.mark.long)


def _is_of_this_test(record: logging.LogRecord) -> bool:
    """The one poller of gRPC wakes loops of tests that have ended, and asyncio logs that."""
    return "PollerCompletionQueue._handle_events" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_of_this_test)
