"""`moorage-driver`: builds everything, runs it, stops it. The only place that constructs.

moorage-driver node     on each node: discovery, Instances, ResourceSlices, the kubelet's plugin
moorage-driver shared   for the cluster: DeviceClasses, and the status of Configurations
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from typing import NoReturn, assert_never

from driver.settings import NodeSettings, SharedSettings, parse_settings

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> NoReturn:
    """Run until a signal."""
    settings = parse_settings(sys.argv[1:], os.environ)
    _log_to_stderr(settings.log_level)
    run(_work(settings))


def run(work: Coroutine[None, None, None]) -> NoReturn:
    """Do the work until it ends or a signal ends it, and leave the process.

    What must be finished, the work finishes itself. Nobody waits for threads: one may hang for
    long in the lookup of a name, or in a file of a device that is broken.
    """
    with asyncio.Runner() as runner:
        status = runner.run(_until_signal(work))
        logging.shutdown()
        os._exit(status)


def _log_to_stderr(level: str) -> None:
    """Libraries never say more than INFO: their debugging drowns ours."""
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=max(logging.INFO, logging.getLevelName(level)), format=form)
    for ours in ("driver", "kube"):
        logging.getLogger(ours).setLevel(level)


def _work(settings: NodeSettings | SharedSettings) -> Coroutine[None, None, None]:
    # Each command imports what it needs and no more: memory on a node is mostly imports.
    match settings:
        case NodeSettings():
            from driver.node_main import run_node

            return run_node(settings)
        case SharedSettings():
            from driver.shared_main import run_shared

            return run_shared(settings)
        case _:
            assert_never(settings)


async def _until_signal(work: Coroutine[None, None, None]) -> int:
    from kube.api import KubeconfigError  # Loaded by now; `--help` does without it.

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
        return 1
    except Exception:
        logger.exception("stopped by an error")
        return 1
    return 0


if __name__ == "__main__":
    main()
