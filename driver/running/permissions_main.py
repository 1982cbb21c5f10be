"""Runs `moorage-driver permissions`: prints Roles for the objects that Configurations name."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable

import yaml

from driver.configurations.permissions import (
    RESOURCES,
    InputError,
    JsonObject,
    configurations_in,
    permissions,
)
from driver.running.settings import PermissionsSettings
from kube.calls.api import ApiError, connect
from kube.kinds import CONFIGURATIONS

STDIN = "-"

logger = logging.getLogger(__name__)


async def run_permissions(settings: PermissionsSettings) -> None:
    """Print Roles and RoleBindings for `kubectl apply -f -`.

    Raises:
        InputError: Configurations cannot be read, or are invalid.
    """
    if settings.filename:
        found = [body for name in settings.filename for body in _of_file(name)]
    else:
        found = await _of_cluster(settings)
    bodies = [role for body in found for role in permissions(body, settings.account)]
    if not bodies:
        logger.warning("no Role is needed: no Configuration names a %s", " or ".join(RESOURCES))
    sys.stdout.write(_text(bodies))
    sys.stdout.flush()  # The process exits without flushing.


def _of_file(name: str) -> list[JsonObject]:
    try:
        # The API server takes UTF-8.
        with open(sys.stdin.fileno() if name == STDIN else name, encoding="utf-8") as file:
            found = list(configurations_in(yaml.safe_load_all(file)))
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{name}: this is not YAML: {error}") from error
    if not found:
        raise InputError(f"{name}: it has no Configuration of akri.sh.")
    return found


async def _of_cluster(settings: PermissionsSettings) -> list[JsonObject]:
    try:
        async with connect(settings.kubeconfig) as client:
            items = (await client.list(CONFIGURATIONS.select())).items
    except ApiError as error:
        raise InputError(f"Configurations cannot be listed: {error}") from error
    # Items of a list have neither apiVersion nor kind.
    kind = {"apiVersion": CONFIGURATIONS.api_version, "kind": "Configuration"}
    return [{**item, **kind} for item in items]


def _text(bodies: Iterable[JsonObject]) -> str:
    return "".join(f"---\n{yaml.safe_dump(body, sort_keys=False)}" for body in bodies)
