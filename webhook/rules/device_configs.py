"""Opaque parameters for Moorage's driver, in claims, templates and DeviceClasses.

The API server does not validate them. Invalid parameters that are stored while the webhook is down
are refused by the node's driver with the same sentences, see
`driver.preparing.grants.claim_configs`.
"""

from __future__ import annotations

from collections.abc import Iterator

from driver.api import DRIVER_NAME, Problem
from driver.models import device_config_problems
from webhook.findings import Findings, refused
from webhook.reviews import Review, part

PLACES = {
    "ResourceClaim": ("spec", "devices", "config"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "config"),
    "DeviceClass": ("spec", "config"),
}


def judge_class(review: Review) -> Findings:
    """Judge the CREATE or UPDATE of a DeviceClass."""
    return refused(config_problems(review))


def config_problems(review: Review) -> Iterator[Problem]:
    """Problems of the entries for Moorage's driver; entries for other drivers are ignored.

    The API server has validated the rest of the object.
    """
    place = PLACES[review.kind.kind]
    for index, entry in enumerate(part(review.new, *place)):
        opaque = entry.get("opaque") or {}
        if opaque.get("driver") != DRIVER_NAME:
            continue
        path = f"{'.'.join(place)}[{index}].opaque.parameters"
        for problem in device_config_problems(opaque.get("parameters")):
            yield Problem(f"{path}.{problem.path}".rstrip("."), problem.message)
