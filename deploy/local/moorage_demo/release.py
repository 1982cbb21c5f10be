"""Moorage as users install it: by its chart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from local_cluster import programs
from local_cluster.api import Cluster
from local_cluster.go_toolchain import ensure_built
from local_cluster.helm import run_helm
from moorage_demo.installation import NAMESPACE, ROOT, SECONDS, is_trusted, load_images

CHART = ROOT / "deploy/helm/moorage"
VALUES = ROOT / "deploy/helm/local-values.yaml"


def install_release(cluster: Cluster, *options: str) -> None:
    """Load the images, install the chart with further options, and wait until all pods serve."""
    with ThreadPoolExecutor() as pool:
        helm = pool.submit(ensure_built, programs.HELM)
        load_images(cluster)
        helm.result()
    by_hand = ("--set=driver.path=dra",) if cluster.settings.has_dra_by_hand else ()
    run_helm(
        *("install", "moorage", str(CHART), f"--namespace={NAMESPACE}", "--create-namespace"),
        *(f"--values={VALUES}", "--set=namespace.create=false", *by_hand, *options),
        *("--wait", f"--timeout={SECONDS:.0f}s"),
        kubeconfig=cluster.kubeconfig,
    )
    cluster.wait_until("the API server trusts the webhook", lambda: is_trusted(cluster))
