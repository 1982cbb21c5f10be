"""Runs `moorage-scheduler-plugin check`: checks an installation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from kube.calls.api import ApiClient, connect
from scheduler_plugin.checking.apiserver_setup import read_setup
from scheduler_plugin.checking.findings import as_objects, as_text, findings_of, is_whole
from scheduler_plugin.checking.setups import Finding
from scheduler_plugin.settings import CheckSettings

USER_AGENT = "moorage-check"
AGAIN_SECONDS = 2.0
"""How soon the check is repeated."""


async def run_check(settings: CheckSettings) -> bool:
    """Read, judge and print, without a change; returns True if nothing is wrong.

    Raises:
        ApiError: The API server cannot be reached.
        OSError: kube-scheduler's configuration cannot be read.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        findings = await _findings(client, settings)
    said = json.dumps(as_objects(findings), indent=2) + "\n"
    sys.stdout.write(said if settings.as_json else as_text(findings))
    return is_whole(findings)


async def _findings(client: ApiClient, settings: CheckSettings) -> Sequence[Finding]:
    """The findings of the last check: of the first without error, or when the time is over."""
    now = asyncio.get_running_loop().time
    until = now() + settings.wait
    while True:
        findings = findings_of(await read_setup(client, settings))
        if is_whole(findings) or now() + AGAIN_SECONDS > until:
            return findings
        await asyncio.sleep(AGAIN_SECONDS)
