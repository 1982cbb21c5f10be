"""`moorage-driver`: reads the settings and runs the command.

moorage-driver node     on each node: discovery, Instances, ResourceSlices, the kubelet's plugin
moorage-driver shared   for the cluster: DeviceClasses, and the status of Configurations
moorage-driver handler  one discovery handler in a process of its own, for Moorage's or Akri's agent
moorage-driver permissions  prints Roles that let drivers read the objects that Configurations name
moorage-driver from-akri    prints what changes if Moorage replaces the Akri of a cluster
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Coroutine
from typing import NoReturn, assert_never

from driver.configurations.permissions import InputError
from driver.running.node_settings import NodeSettings
from driver.running.settings import (
    FromAkriSettings,
    HandlerProcessSettings,
    PermissionsSettings,
    Settings,
    SharedSettings,
    parse_settings,
)
from driver.server_versions import FeaturesChangedError


def main() -> NoReturn:
    """Run until a signal."""
    settings = parse_settings(sys.argv[1:], os.environ)
    from kube.processes.api import STUCK_SECONDS, log_to_stderr, run_process

    log_to_stderr(settings.log_level, "driver", form=settings.log_format)
    work = _work(settings)
    # Imported modules stay in memory; each garbage collection would spend 20 ms on them.
    gc.freeze()
    run_process(work, plain_errors=(InputError, FeaturesChangedError), stuck_seconds=STUCK_SECONDS)


def _work(settings: Settings) -> Coroutine[None, None, None]:
    # Each command imports only what it needs: imports take most of the memory on a node.
    match settings:
        case NodeSettings():
            from driver.running.node.node_main import run_node

            return run_node(settings)
        case SharedSettings():
            from driver.running.shared.shared_main import run_shared

            return run_shared(settings)
        case HandlerProcessSettings():
            from driver.running.handler_main import run_handler

            return run_handler(settings)
        case PermissionsSettings():
            from driver.running.permissions_main import run_permissions

            return run_permissions(settings)
        case FromAkriSettings():
            from driver.running.from_akri.from_akri_main import run_from_akri

            return run_from_akri(settings)
        case _:
            assert_never(settings)


if __name__ == "__main__":
    main()
