"""`moorage-webhook`: validates Queues, and who may use accounted devices."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import NoReturn

import uvloop

from kube.api import KubeconfigError
from webhook.https_server import CertificateError
from webhook.serve_main import serve_webhook
from webhook.settings import WebhookSettings, parse_settings

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> NoReturn:
    """Run until a signal."""
    settings = parse_settings(sys.argv[1:], os.environ)
    _log_to_stderr(settings.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        status = runner.run(_until_signal(settings))
        logging.shutdown()
        # Nobody waits for threads: one may hang for long in the lookup of a name.
        os._exit(status)


def _log_to_stderr(level: str) -> None:
    """Libraries never say more than INFO: their debugging drowns ours."""
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=max(logging.INFO, logging.getLevelName(level)), format=form)
    for ours in ("webhook", "kube"):
        logging.getLogger(ours).setLevel(level)


async def _until_signal(settings: WebhookSettings) -> int:
    task = asyncio.ensure_future(serve_webhook(settings))
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        logger.info("stopped by a signal")
        return 0
    except (KubeconfigError, CertificateError, OSError) as error:
        logger.error("%s", error)  # noqa: TRY400  The sentence says it all.
        return 1
    except Exception:
        logger.exception("stopped by an error")
        return 1
    return 0


if __name__ == "__main__":
    main()
