"""What the driver finds wrong with a Configuration, for who is asked before it is stored.

A door of its own beside `api` and `models`: it reads discovery details as the handlers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver.api import Problem
from driver.configurations.configurations import judge
from driver.discovery.handlers import HANDLER_NAMES as HANDLER_NAMES
from driver.discovery.handlers import check_details
from driver.models import configuration_problems

_NOT_STORED = {"uid": "", "creationTimestamp": "1970-01-01T00:00:00Z"}
"""What the API server adds to the metadata of a new object."""


def configuration_flaws(body: Mapping[str, Any]) -> tuple[Problem, ...]:
    """All that keeps a Configuration from being accepted, as its condition Accepted would say it.

    Some details take 40 microseconds a character, such as a list of one-letter descriptions: a
    second for 25,000.
    """
    verdict = judge(
        {**body, "metadata": {**_NOT_STORED, **body["metadata"]}},
        check_details,
        unique_devices_default=True,
        check_shape=configuration_problems,
    )
    return verdict.problems
