"""What the release in a cluster was told, so that a view says what its plugin does."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from kube.kinds import DEPLOYMENTS
from kube.kubectl_client import ApiReader, ForbiddenError, NotFoundError
from scheduler_plugin.accounting_arguments import ReleaseSettings, release_settings
from scheduler_plugin.asking.release_words import plugin_words
from scheduler_plugin.asking.view_errors import CannotTellError
from scheduler_plugin.asking.view_settings import Reading
from scheduler_plugin.kubectl.printing import note

DEPLOYMENT = "moorage-scheduler"


async def told(client: ApiReader, reading: Reading) -> ReleaseSettings:
    """What the plugin was told; else its defaults."""
    words: tuple[str, ...] = ()
    try:
        path = DEPLOYMENTS.at(DEPLOYMENT, reading.release_namespace)
        words = plugin_words(await client.get(path))
    except NotFoundError:
        pass  # The plugin runs beside the cluster's own kube-scheduler, or elsewhere.
    except ForbiddenError as error:
        note(f"the settings of the release are not read, the defaults count: {error}")
    return plugin_settings(words)


def plugin_settings(words: Sequence[str]) -> ReleaseSettings:
    """What these words tell a plugin.

    Raises:
        CannotTellError: This version does not understand what another was told.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return release_settings(words)
    except SystemExit:
        why_not = said.getvalue().strip().splitlines()[-1:] or [" ".join(words)]
        raise CannotTellError(
            f"the release was told what this version does not understand: {why_not[0]}"
        ) from None
