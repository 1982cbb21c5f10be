"""`moorage-webhook`: validates Queues, and the use of accounted devices."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import uvloop

from kube.http_server import CannotListenError
from kube.live_tls import CertificateError
from kube.processes.api import STUCK_SECONDS, log_to_stderr, run_process
from webhook.serve_main import serve_webhook
from webhook.settings import parse_settings


def main() -> NoReturn:
    """Run until a signal."""
    settings = parse_settings(sys.argv[1:], os.environ)
    log_to_stderr(settings.log_level, "webhook", "scheduler_plugin", form=settings.log_format)
    run_process(
        serve_webhook(settings),
        plain_errors=(CertificateError, CannotListenError),
        loop_factory=uvloop.new_event_loop,
        stuck_seconds=STUCK_SECONDS,
    )


if __name__ == "__main__":
    main()
