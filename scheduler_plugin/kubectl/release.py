"""The settings of the release in a cluster, so that views judge as its plugin does."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from kube.kinds import DEPLOYMENTS
from kube.kubectl_client import ApiReader, ForbiddenError, NotFoundError
from scheduler_plugin.accounting_arguments import ReleaseSettings, release_settings
from scheduler_plugin.asking.release_flags import plugin_flags
from scheduler_plugin.asking.view_errors import CannotAnswerError
from scheduler_plugin.asking.view_settings import Reading
from scheduler_plugin.kubectl.printing import note

DEPLOYMENT = "moorage-scheduler"


async def read_release(client: ApiReader, reading: Reading) -> ReleaseSettings:
    """The settings of the release's plugin; defaults if they cannot be read."""
    words: tuple[str, ...] = ()
    try:
        path = DEPLOYMENTS.at(DEPLOYMENT, reading.release_namespace)
        words = plugin_flags(await client.get(path))
    except NotFoundError:
        pass  # The plugin runs beside the cluster's own kube-scheduler, or in another namespace.
    except ForbiddenError as error:
        note(f"the settings of the release cannot be read, so the defaults are used: {error}")
    return plugin_settings(words)


def plugin_settings(words: Sequence[str]) -> ReleaseSettings:
    """The settings in a plugin's flags.

    Raises:
        CannotTellError: If this version does not understand the flags of another version.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return release_settings(words)
    except SystemExit:
        why_not = said.getvalue().strip().splitlines()[-1:] or [" ".join(words)]
        raise CannotAnswerError(
            f"the release has flags that this version does not understand: {why_not[0]}"
        ) from None
