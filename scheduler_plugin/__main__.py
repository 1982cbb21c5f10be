"""`moorage-scheduler-plugin`: judges and binds the pods of the kube-scheduler beside it.

moorage-scheduler-plugin                answer kube-scheduler until a signal
moorage-scheduler-plugin print-config   print the configuration that kube-scheduler needs
moorage-scheduler-plugin print-static-pod   print kube-scheduler's static pod with the plugin
moorage-scheduler-plugin write-certificates  write the certificates of both on a control plane
moorage-scheduler-plugin check          check an installation
moorage-scheduler-plugin dashboard      serve a page about devices, queues and waiting pods
moorage-scheduler-plugin in-use         print the users of devices, before an uninstallation
moorage-scheduler-plugin leave          remove Moorage's finalizers, after an uninstallation
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import yaml

from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.dashboard_settings import DashboardSettings
from scheduler_plugin.extender.scheduler_configuration import (
    scheduler_configuration,
    why_not_called,
)
from scheduler_plugin.serve_settings import ServeSettings
from scheduler_plugin.settings import (
    CheckSettings,
    InUseSettings,
    LeaveSettings,
    PrintStaticPodSettings,
    WriteCertificatesSettings,
)


def main() -> int:
    """Run the command; returns the exit status."""
    settings = parse_settings(sys.argv[1:], os.environ)
    if isinstance(settings, ServeSettings):
        _serve(settings)
    if isinstance(settings, DashboardSettings):
        _dashboard(settings)
    if isinstance(settings, LeaveSettings):
        _leave(settings)
    if isinstance(settings, CheckSettings):
        return _check(settings)
    if isinstance(settings, InUseSettings):
        return _in_use(settings)
    if isinstance(settings, PrintStaticPodSettings):
        return _print_static_pod(settings)
    if isinstance(settings, WriteCertificatesSettings):
        return _write_certificates(settings)
    _print(scheduler_configuration(settings))
    return 0


def _serve(settings: ServeSettings) -> NoReturn:
    # Imported here, since `--help` and `print-config` do not need these modules.
    import uvloop

    from kube.http_server import CannotListenError
    from kube.processes.api import log_to_stderr, run_process
    from scheduler_plugin.serve_main import run_serve

    log_to_stderr(settings.log_level, "scheduler_plugin", "binder", form=settings.log_format)
    run_process(
        run_serve(settings),
        plain_errors=(CannotListenError,),
        loop_factory=uvloop.new_event_loop,
    )


def _dashboard(settings: DashboardSettings) -> NoReturn:
    import uvloop

    from kube.http_server import CannotListenError
    from kube.processes.api import log_to_stderr, run_process
    from scheduler_plugin.dashboard_main import run_dashboard

    log_to_stderr(settings.log_level, "scheduler_plugin", form=settings.log_format)
    run_process(
        run_dashboard(settings),
        plain_errors=(CannotListenError,),
        loop_factory=uvloop.new_event_loop,
    )


def _leave(settings: LeaveSettings) -> NoReturn:
    from kube.calls.api import ApiError
    from kube.processes.api import log_to_stderr, run_process
    from scheduler_plugin.leave_main import run_leave

    log_to_stderr(settings.log_level, "scheduler_plugin")
    run_process(run_leave(settings), plain_errors=(ApiError,))


def _check(settings: CheckSettings) -> int:
    """0 if nothing is wrong, 1 if something is wrong, 2 if the cluster cannot be read."""
    from scheduler_plugin.check_main import run_check

    return _exit_status("check", settings.log_level, run_check(settings), good=True)


def _in_use(settings: InUseSettings) -> int:
    """0 if no pod uses a device and no broker runs, 1 if one does, 2 if nothing can be read."""
    from scheduler_plugin.in_use_main import run_in_use

    return _exit_status("in-use", settings.log_level, run_in_use(settings), good=False)


def _exit_status(
    command: str, log_level: str, run: Coroutine[Any, Any, bool], *, good: bool
) -> int:
    import asyncio

    from kube.calls.api import ApiError, KubeconfigError
    from kube.processes.api import log_to_stderr

    log_to_stderr(log_level, "scheduler_plugin")
    try:
        return int(asyncio.run(run) is not good)
    except (ApiError, KubeconfigError, OSError) as error:
        sys.stderr.write(f"moorage-scheduler-plugin {command}: {error}\n")
        return 2


def _print_static_pod(settings: PrintStaticPodSettings) -> int:
    from scheduler_plugin.extender.static_pods import with_plugin

    try:
        found = yaml.safe_load(settings.manifest.read_text(encoding="utf-8"))
        changed = with_plugin(found, settings.sidecar)
    except (OSError, ValueError, yaml.YAMLError) as error:
        sys.stderr.write(f"{settings.manifest}: {error}\n")
        return 2
    if why := _why_not_called(settings):
        sys.stderr.write(f"{settings.scheduler_configuration}: {why}\n")
        return 2
    _print(changed)
    return 0


def _why_not_called(settings: PrintStaticPodSettings) -> str:
    """Why kube-scheduler would not call the plugin; "" if its file is not on this machine."""
    file = settings.scheduler_configuration
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, yaml.YAMLError) as error:
        return str(error)
    return why_not_called(found, plain_http=settings.plain_http)


def _write_certificates(settings: WriteCertificatesSettings) -> int:
    from scheduler_plugin.extender.disk_certificates import write_certificates

    try:
        write_certificates(settings.folder)
    except OSError as error:
        sys.stderr.write(f"moorage-scheduler-plugin write-certificates: {error}\n")
        return 1
    return 0


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(yaml.safe_dump(document, sort_keys=False))


if __name__ == "__main__":
    sys.exit(main())
