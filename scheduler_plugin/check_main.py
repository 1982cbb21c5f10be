"""Runs `moorage-scheduler-plugin check`: says whether what runs in a cluster is whole."""

from __future__ import annotations

import json
import sys

from kube.api import connect
from scheduler_plugin.checking.apiserver_setup import read_setup
from scheduler_plugin.checking.findings import as_objects, as_text, findings_of, is_whole
from scheduler_plugin.settings import CheckSettings

USER_AGENT = "moorage-check"


async def run_check(settings: CheckSettings) -> bool:
    """Read, judge, print; nothing is changed. True if nothing is wrong.

    Raises:
        ApiError: If the API server cannot be reached.
        OSError: If kube-scheduler's configuration cannot be read.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        findings = findings_of(await read_setup(client, settings))
    said = json.dumps(as_objects(findings), indent=2) + "\n"
    sys.stdout.write(said if settings.as_json else as_text(findings))
    return is_whole(findings)
