"""`kubectl moorage` of a cluster: it reads through the user's kubectl, or else by itself."""

from __future__ import annotations

import os

from kube.kubectl_client import (
    ApiError,
    Choice,
    KubeconfigError,
    KubectlClient,
    choice_of,
    finished,
    started,
)
from scheduler_plugin.asking.view_errors import CannotAnswerError
from scheduler_plugin.asking.view_settings import ViewSettings


def run_live(settings: ViewSettings) -> None:
    """Read the cluster, and print one view.

    Raises:
        NotThereError: If a named object does not exist, or Moorage is not installed.
        CannotTellError: If something that is needed cannot be read.
    """
    try:
        if not _by_kubectl(settings):
            # Its imports take most of a second; it has a sentence for each fault of a kubeconfig.
            from scheduler_plugin.kubectl.connected import run_connected

            run_connected(settings)
    except (ApiError, KubeconfigError) as error:
        raise CannotAnswerError(str(error)) from None


def _by_kubectl(settings: ViewSettings) -> bool:
    """Print the view through kubectl; False if kubectl cannot reach the cluster."""
    choice = choice_of(settings.reading.kubeconfig, settings.reading.context)
    if _is_pods_own(choice):
        return False
    with started(choice) as kubectl:
        # This is imported while kubectl starts.
        from scheduler_plugin.kubectl.cluster_views import show_view

        if kubectl is None or not kubectl.listens():
            return False
        finished(show_view(KubectlClient(kubectl, choice), settings))
        return True


def _is_pods_own(choice: Choice) -> bool:
    """Whether the cluster is that of the pod that this process runs in."""
    named = choice.file or choice.context or os.environ.get("KUBECONFIG")
    return not named and "KUBERNETES_SERVICE_HOST" in os.environ
