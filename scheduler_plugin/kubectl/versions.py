"""`kubectl moorage version`."""

from __future__ import annotations

from kube.kinds import DEPLOYMENTS
from kube.kubectl_client import ApiReader, ForbiddenError, NotFoundError
from scheduler_plugin.asking.release_flags import plugin_image
from scheduler_plugin.asking.versions import Versions, shown_versions
from scheduler_plugin.asking.view_errors import CannotAnswerError, NotThereError
from scheduler_plugin.asking.view_settings import Reading
from scheduler_plugin.kubectl.printing import show
from scheduler_plugin.kubectl.release import DEPLOYMENT


def show_client_version(reading: Reading) -> None:
    """Print the version of this command alone."""
    show(shown_versions(Versions.of_client()), reading)


async def show_versions(client: ApiReader, reading: Reading) -> None:
    """Print the versions of this command, the release and the cluster.

    Raises:
        NotThereError: If there is no release; the other versions are printed before.
        CannotTellError: If the release may not be read; the other versions are printed before.
    """
    server = (await client.server()).git_version
    namespace = reading.release_namespace
    try:
        image = plugin_image(await client.get(DEPLOYMENTS.at(DEPLOYMENT, namespace)))
    except (NotFoundError, ForbiddenError) as error:
        show(shown_versions(Versions.of_client(kubernetes=server)), reading)
        where = f"Deployment {namespace}/{DEPLOYMENT}"
        if isinstance(error, ForbiddenError):
            raise CannotAnswerError(
                f"the server's version comes from {where}, which cannot be read: {error}"
            ) from None
        raise NotThereError(
            f"there is no {where}: give the namespace of the release with --release-namespace."
        ) from None
    show(shown_versions(Versions.of_client(kubernetes=server, image=image)), reading)
