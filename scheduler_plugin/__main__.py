"""`moorage-scheduler-plugin`: what beside a kube-scheduler judges and binds its pods.

moorage-scheduler-plugin                answer kube-scheduler, until a signal
moorage-scheduler-plugin print-config   what kube-scheduler's configuration must say
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import NoReturn

from scheduler_plugin.scheduler_configuration import scheduler_configuration
from scheduler_plugin.settings import PrintConfigSettings, ServeSettings, parse_settings

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Do what the command line says; returns the exit status."""
    settings = parse_settings(sys.argv[1:], os.environ)
    if isinstance(settings, ServeSettings):
        _serve(settings)
    return _print_config(settings)


def _serve(settings: ServeSettings) -> NoReturn:
    from scheduler_plugin.serve_main import run_serve  # `--help` does without all of it.

    _log_to_stderr(settings.log_level)
    run(run_serve(settings))


def _print_config(settings: PrintConfigSettings) -> int:
    lease = settings.lease
    configuration = scheduler_configuration(
        settings.scheduler_name, (lease.namespace, lease.name), settings.listening, settings.caller
    )
    sys.stdout.write(configuration)
    return 0


def run(work: Coroutine[None, None, None]) -> NoReturn:
    """Do the work until it ends or a signal ends it, and leave the process.

    What must be finished, the work finishes itself. Nobody waits for threads: one may hang for
    long in the lookup of a name.
    """
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(_until_signal(work))
        logging.shutdown()
        os._exit(status)


def _log_to_stderr(level: str) -> None:
    """Libraries never say more than INFO: their debugging drowns ours."""
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=max(logging.INFO, logging.getLevelName(level)), format=form)
    for ours in ("scheduler_plugin", "binder", "kube"):
        logging.getLogger(ours).setLevel(level)


async def _until_signal(work: Coroutine[None, None, None]) -> int:
    from kube.api import KubeconfigError

    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logger.info("stopped by a signal")
        return 0
    except KubeconfigError as error:
        logger.error("%s", error)  # noqa: TRY400  The sentence says it all.
    except Exception as error:
        if cause := _cannot_listen(error):
            logger.error("%s", cause)  # noqa: TRY400
        else:
            logger.exception("stopped by an error")
    return 1


def _cannot_listen(error: Exception) -> Exception | None:
    """What a group of errors is about, where the address or the certificates are of no use."""
    from scheduler_plugin.http_server import CannotListenError

    group = error.subgroup(CannotListenError) if isinstance(error, ExceptionGroup) else None
    return group.exceptions[0] if group else None


if __name__ == "__main__":
    sys.exit(main())
