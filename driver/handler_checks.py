"""Validates a Configuration as the driver does, for the webhook and the command line.

It is public beside `api` and `models`, and parses discovery details as the handlers do.
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
"""Metadata that the API server adds to a new object."""


def configuration_flaws(body: Mapping[str, Any]) -> tuple[Problem, ...]:
    """All problems of a Configuration, as its condition Accepted would state them.

    Parsing some details takes 40 µs per character, such as a list of one-letter descriptions: 1 s
    for 25,000 characters.
    """
    verdict = judge(
        {**body, "metadata": {**_NOT_STORED, **body["metadata"]}},
        check_details,
        unique_devices_default=True,
        check_shape=configuration_problems,
    )
    return verdict.problems
